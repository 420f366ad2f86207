package collector

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/report"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

const (
	maxPromptVersionBytes = 64
	// maxNoteBytes bounds what a runner says of a row beside its judgments.
	maxNoteBytes = 8 << 10
)

// postFindings answers POST /v1/leaves/{name}/findings: it ends a row with the report that its judgments make. The
// first report of a row stays: the same again is accepted, another is not.
func (c *Collector) postFindings(e *exchange) (any, error) {
	leaf, err := e.grant.leaf(e.request.PathValue("name"))
	if err != nil {
		return nil, err
	}
	var findings v1alpha1.Findings
	release, err := c.read(e, &findings)
	if err != nil {
		return nil, err
	}
	defer release()
	var receipt wire.Receipt
	checked, written := false, false
	err = c.write(e.ctx, e.grant, leaf, func(run *v1alpha1.EvalRun) (bool, error) {
		row, spec := runtree.Graded(run)
		if row == nil {
			return false, notSettled()
		}
		if !checked {
			if err := checkFindings(e.grant, spec, &findings); err != nil {
				return false, err
			}
			c.redactor.Findings(&findings)
			checked = true
		}
		f := findings
		f.Judgments = merge(run.Status.Judgments, findings.Judgments)
		made := rubric.Score(*row, spec, f)
		made = *made.DeepCopy() // it shares its cell with the cache
		c.redactor.Report(&made)
		if earlier := run.Status.Report; earlier != nil {
			if !sameReport(earlier, &made) {
				return false, refuse(http.StatusConflict, reasonOtherWins, "the row %s has its report already, and this is another one", leaf.name)
			}
			written, receipt = false, wire.Receipt{Outcome: earlier.Outcome, Score: earlier.Score}
			return false, nil
		}
		report.BoundTo(&made, min(v1alpha1.MaxReportBytes, room(run)))
		written, receipt = true, wire.Receipt{Outcome: made.Outcome, Score: made.Score}
		c.end(run, &made)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if written {
		c.metrics.reported(receipt.Outcome)
		e.log.Info("report written", "leaf", leaf.name, "outcome", receipt.Outcome)
	}
	return receipt, nil
}

// end puts the report into the status. A child ends with it; a root that grades its only row itself is ended by its
// reconciler, which also looks after its Job.
func (c *Collector) end(run *v1alpha1.EvalRun, made *v1alpha1.Report) {
	run.Status.Report, run.Status.Judgments = made, nil
	if runtree.IsChild(run) {
		runtree.Conclude(run, runtree.Ending{Summary: rubric.Summarize([]*v1alpha1.Report{made}), Note: made.Note}, c.now())
	}
}

// sameReport tells whether a report, before it is cut, is the one that was written, which may have been cut.
func sameReport(written, made *v1alpha1.Report) bool {
	if written.Truncated != nil {
		return written.Truncated.Digest == report.Digest(made)
	}
	a, errA := json.Marshal(written)
	b, errB := json.Marshal(made)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// checkFindings refuses findings that cannot be those of a row.
func checkFindings(g *grant, spec *v1alpha1.EvalSpec, f *v1alpha1.Findings) error {
	if err := checkJudgments(spec, f.Judgments); err != nil {
		return err
	}
	wrong := func(what string) error {
		return refuse(http.StatusUnprocessableEntity, reasonJudgments, "the findings cannot be those of the row: %s", what)
	}
	switch {
	case f.Provider != "" && !slices.Contains(judge.Providers(), f.Provider):
		return wrong("their provider is unknown")
	case len(f.Models) > rubric.Members(spec.Judge):
		return wrong("they name more models than there are judges")
	case slices.ContainsFunc(f.Models, func(m string) bool { return len(m) > maxModelBytes }):
		return wrong("the name of a model is too long")
	case len(f.PromptVersion) > maxPromptVersionBytes:
		return wrong("the version of their prompts is too long")
	case f.Reason != "" && f.Reason != v1alpha1.RowBudgetExceeded:
		return wrong("their reason is unknown")
	case f.Reason == v1alpha1.RowBudgetExceeded && g.maxCost == nil:
		return wrong("they say that maxCost is used up, and the run has none")
	}
	f.Error, f.Deferred = report.Cut(f.Error, maxNoteBytes), report.Cut(f.Deferred, maxNoteBytes)
	return nil
}
