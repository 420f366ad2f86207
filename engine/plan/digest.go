package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// digestVersion is part of every digest. It changes only when the meaning of a field changes, never with a release
// that grades alike: an upgrade must not make anything look new.
const digestVersion = "1"

// Digest identifies what a resolved eval grades, with what and by whom: two evals with the same digest grade alike.
// What people only read (title, descriptions) and what only decides about money and keys does not count.
func Digest(spec *v1alpha1.EvalSpec) string {
	graded := *spec.DeepCopy()
	graded.Title, graded.OnDeferred = "", ""
	if graded.Response != nil {
		graded.Server = "" // only a live run asks it
	}
	if graded.Judge != nil {
		graded.Judge.SecretRef = nil
		if reflect.ValueOf(*graded.Judge).IsZero() {
			graded.Judge = nil
		}
	}
	if graded.Rubric != nil {
		graded.Rubric.Description = ""
	}
	for i := range graded.Rubrics {
		graded.Rubrics[i].Description = ""
	}
	return digest(graded)
}

// RubricDigest identifies what a rubric grades: two rubrics with the same digest grade alike. A preset counts with its criteria.
func RubricDigest(r *v1alpha1.RubricSpec) string {
	graded := ResolveRubric(*r.DeepCopy())
	graded.Description = ""
	return digest(graded)
}

// digestRows identifies the rows of a plan and their order.
func digestRows(rows []Row) string {
	type rowDigest struct {
		Row    v1alpha1.Row
		Digest string
	}
	all := make([]rowDigest, len(rows))
	for i, r := range rows {
		all[i] = rowDigest{Row: r.Row, Digest: r.Digest}
	}
	return digest(all)
}

// digest is the SHA-256 of a value as JSON, whose object keys encoding/json writes in a fixed order.
func digest(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // the types of the API always marshal, but for NaN, which no document can hold
		data = fmt.Appendf(nil, "%#v", v)
	}
	h := sha256.New()
	h.Write([]byte(digestVersion + "\n"))
	h.Write(data)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// ShortDigest is the part of a digest that goes into names and labels: its first 10 hex digits.
func ShortDigest(digest string) string {
	const prefix = "sha256:"
	if len(digest) < len(prefix)+10 {
		return digest
	}
	return digest[len(prefix) : len(prefix)+10]
}
