// Package plan turns evals into rows that can be graded: it resolves references, validates, expands matrices, projects
// calls and computes digests. All of it is pure: the same evals and catalog make the same plan.
package plan

import (
	"fmt"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// MaxRows is how many rows a run can have.
const MaxRows = 5000

// NamedEval is an eval with the name of the object that it comes from.
type NamedEval struct {
	Name string
	Spec v1alpha1.EvalSpec
}

// Row is one eval in one matrix cell, resolved: it needs nothing else to be graded.
type Row struct {
	v1alpha1.Row
	// Spec has no matrix and no references: its rubrics and its response are filled in, and its judge is the cell's.
	Spec v1alpha1.EvalSpec
	// Calls is how many judge calls the row makes, at most (S-30).
	Calls int32
	// Digest identifies what is graded, with what and by whom.
	Digest string
}

// Plan is what a run grades.
type Plan struct {
	Rows []Row
	// Calls is the sum of the rows'.
	Calls int32
	// Digest identifies what the rows grade, and their order.
	Digest string
	// Revision identifies the rows to the letter, with what cannot change a grade (titles, Secrets, what deferring means).
	// The children of a run belong to one revision.
	Revision string
}

// Options change every eval of a plan.
type Options struct {
	// JudgeModel replaces judge.model. A panel, and an axis of models, stay (S-24).
	JudgeModel v1alpha1.ModelName
	// DefaultJudgeModel is the model of evals that name none.
	DefaultJudgeModel v1alpha1.ModelName
}

// Make plans a run of evals. It fails with a *NotFoundError for a name that the catalog lacks, and with an
// *InvalidError that lists every problem of the first eval that has one.
func Make(evals []NamedEval, catalog Catalog, o Options) (*Plan, error) {
	p := &Plan{}
	names := make(map[string]bool)
	for _, e := range evals {
		resolved, err := Resolve(e.Spec, catalog)
		if err != nil {
			return nil, fmt.Errorf("eval %q: %w", e.Name, err)
		}
		if problems := Validate(&resolved); len(problems) > 0 {
			return nil, fmt.Errorf("eval %q: %w", e.Name, &InvalidError{Problems: problems})
		}
		for _, row := range expand(e.Name, applyOptions(resolved, o)) {
			if names[row.Name] {
				return nil, fmt.Errorf("two rows are named %q; give the evals different titles", row.Name)
			}
			names[row.Name] = true
			p.Rows = append(p.Rows, row)
			p.Calls += row.Calls
		}
		if len(p.Rows) > MaxRows {
			return nil, fmt.Errorf("the run has more than %d rows; select fewer evals, or shorten a matrix", MaxRows)
		}
	}
	p.Digest, p.Revision = digestRows(p.Rows), digest(p.Rows)
	return p, nil
}

// Leaf makes the row of an eval that is one already: the child of a run, with its row said by its parent.
func Leaf(row v1alpha1.Row, spec v1alpha1.EvalSpec) Row {
	return Row{Row: row, Spec: spec, Calls: Calls(&spec), Digest: Digest(&spec)}
}

func applyOptions(spec v1alpha1.EvalSpec, o Options) v1alpha1.EvalSpec {
	if o.JudgeModel == "" && o.DefaultJudgeModel == "" {
		return spec
	}
	judge := v1alpha1.JudgeSpec{}
	if spec.Judge != nil {
		judge = *spec.Judge
	}
	if len(judge.Panel) > 0 {
		return spec
	}
	switch {
	case o.JudgeModel != "":
		judge.Model = o.JudgeModel
	case judge.Model == "":
		judge.Model = o.DefaultJudgeModel
	}
	spec.Judge = &judge
	return spec
}
