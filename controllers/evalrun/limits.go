package evalrun

import (
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// etcd takes objects of 1.5 MiB. A leaf holds its resolved eval, the judgments while it is graded, and its report; a
// root holds a line a row.
const (
	// maxEvalBytes bounds a resolved eval as JSON, in bytes.
	maxEvalBytes = 768 << 10
	// maxTwiceBytes bounds the eval that a run of one row has inline, and as it is frozen in its status, together: its
	// report must fit beside both.
	maxTwiceBytes = 1024 << 10
	// maxRunBytes bounds a run without its metadata and its conditions as JSON, in bytes.
	maxRunBytes = 1408 << 10
	// maxRowsBytes bounds status.rows as JSON, in bytes.
	maxRowsBytes = 512 << 10
	// maxRows bounds the number of status.rows.
	maxRows = 1000
	// maxNote bounds the note of an event, in bytes; the API server takes 1024.
	maxNote = 1000
)

// tooBig says which row of a run cannot be stored, and what to do; empty when all can.
func tooBig(run *v1alpha1.EvalRun, p *plan.Plan) string {
	for i := range p.Rows {
		row := &p.Rows[i]
		size := encodedLen(&row.Spec)
		if size > maxEvalBytes {
			return fmt.Sprintf("row %q: prompt, response, context and rubrics have %d KiB together, at most %d KiB are possible; make them shorter",
				row.Name, size>>10, maxEvalBytes>>10)
		}
		if run.Spec.Eval != nil && len(p.Rows) == 1 && size+encodedLen(run.Spec.Eval) > maxTwiceBytes {
			return fmt.Sprintf("spec.eval has %d KiB, at most %d KiB are possible in a run; make it an Eval, and name it in spec.evalRef",
				size>>10, maxTwiceBytes>>11)
		}
	}
	return ""
}

func encodedLen(v any) int {
	data, err := json.Marshal(v)
	if err != nil { // the types of the API always marshal
		return 0
	}
	return len(data)
}

// listed are the first rows that fit into the status of a run.
func listed(run *v1alpha1.EvalRun, rows []v1alpha1.RowResult) []v1alpha1.RowResult {
	size, room := 0, min(maxRowsBytes, maxRunBytes-encodedLen(&run.Spec)-encodedLen(run.Status.Budget))
	for i, row := range rows {
		data, err := json.Marshal(row)
		if size += len(data) + 1; err != nil || size > room || i == maxRows {
			return rows[:i]
		}
	}
	return rows
}

// refusedForSize tells whether the API server, or etcd behind it, would not take an object because of its size.
func refusedForSize(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) ||
		strings.Contains(err.Error(), "etcdserver: request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max")
}
