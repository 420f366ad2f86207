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
	// maxRowsBytes bounds status.rows as JSON, in bytes.
	maxRowsBytes = 512 << 10
	// maxRows bounds the number of status.rows.
	maxRows = 1000
	// maxNote bounds the note of an event, in bytes; the API server takes 1024.
	maxNote = 1000
)

// tooBig says which row cannot be stored, and what to do; empty when all can.
func tooBig(p *plan.Plan) string {
	for _, row := range p.Rows {
		data, err := json.Marshal(row.Spec)
		if err == nil && len(data) > maxEvalBytes {
			return fmt.Sprintf("row %q: prompt, response, context and rubrics have %d KiB together, at most %d KiB are possible; make them shorter",
				row.Name, len(data)>>10, maxEvalBytes>>10)
		}
	}
	return ""
}

// listed are the first rows that fit into a status.
func listed(rows []v1alpha1.RowResult) []v1alpha1.RowResult {
	size := 0
	for i, row := range rows {
		data, err := json.Marshal(row)
		if size += len(data) + 1; err != nil || size > maxRowsBytes || i == maxRows {
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
