package collector

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
	"github.com/mcptest/mcptest-operator/engine/report"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

const (
	// maxKeptText is how many bytes of a reason or a quote are kept while a row is being graded.
	maxKeptText = 1 << 10
	// maxModelBytes bounds the name of a model that a runner tells.
	maxModelBytes = 256
	// maxCallsPerJudgment is far above what one question can take: 3 verdicts of 6 attempts each.
	maxCallsPerJudgment = 1000
	// maxTokensPerJudgment and maxCostPerJudgment (US dollars) keep sums finite.
	maxTokensPerJudgment = 1 << 40
	maxCostPerJudgment   = 1e6
)

// postJudgments answers POST /v1/judgments: the first answer to each question is kept. Judgments of a row that has its
// report, or is gone, are not needed any more.
func (c *Collector) postJudgments(e *exchange) (any, error) {
	var body wire.Judgments
	release, err := c.read(e, &body)
	if err != nil {
		return nil, err
	}
	defer release()
	leaves := make([]object, len(body.Leaves))
	for i, sent := range body.Leaves {
		if leaves[i], err = e.grant.leaf(sent.Name); err != nil {
			return nil, err
		}
	}
	for i, sent := range body.Leaves {
		err := c.keep(e, leaves[i], sent.Judgments)
		var refused *refusal
		if errors.As(err, &refused) && refused.status == http.StatusNotFound {
			e.log.V(1).Info("judgments of a row that is gone", "leaf", sent.Name)
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return struct{}{}, nil
}

func (c *Collector) keep(e *exchange, leaf object, sent []v1alpha1.Judgment) error {
	var added int
	checked := false
	err := c.write(e.ctx, e.grant, leaf, func(run *v1alpha1.EvalRun) (bool, error) {
		added = 0
		if run.Status.Report != nil {
			return false, nil
		}
		if !checked {
			row, spec := runtree.Graded(run)
			if row == nil {
				return false, notSettled()
			}
			if err := checkJudgments(spec, sent); err != nil {
				return false, err
			}
			redacted := v1alpha1.Findings{Judgments: sent}
			c.redactor.Findings(&redacted)
			sent, checked = redacted.Judgments, true
		}
		run.Status.Judgments, added = keepFirst(run.Status.Judgments, sent)
		if added == 0 {
			return false, nil
		}
		all := len(run.Status.Judgments)
		run.Status.Judgments = boundJudgments(run.Status.Judgments, min(maxJudgmentsBytes, room(run)))
		if dropped := all - len(run.Status.Judgments); dropped > 0 {
			e.log.Info("a row has more judgments than fit into its status: the newest are not kept for a retried pod", "leaf", leaf.name, "dropped", dropped)
			added = max(0, added-dropped)
		}
		return true, nil
	})
	if err == nil {
		c.metrics.judgments.Add(float64(added))
	}
	return err
}

// keepFirst adds answers to those that are kept: only to questions that have none yet, and only answers, since what
// could not be had is asked for again. It returns how many it added.
func keepFirst(kept, sent []v1alpha1.Judgment) ([]v1alpha1.Judgment, int) {
	known := make(map[v1alpha1.QuestionKey]bool, len(kept))
	for _, j := range kept {
		known[j.QuestionKey] = true
	}
	added := 0
	for _, j := range sent {
		if j.Score == nil || known[j.QuestionKey] {
			continue
		}
		known[j.QuestionKey] = true
		j.Reason, j.Evidence = report.Cut(j.Reason, maxKeptText), report.Cut(j.Evidence, maxKeptText)
		kept = append(kept, j)
		added++
	}
	return kept, added
}

// boundJudgments cuts judgments to at most limit bytes as JSON: their texts first, to 128 bytes and then wholly; where
// that is not enough, the newest are left out.
func boundJudgments(judgments []v1alpha1.Judgment, limit int) []v1alpha1.Judgment {
	for _, text := range []int{maxKeptText, 128, 0} {
		if text < maxKeptText {
			for i := range judgments {
				j := &judgments[i]
				j.Reason, j.Evidence = report.Cut(j.Reason, text), report.Cut(j.Evidence, text)
			}
		}
		if encodedLen(judgments) <= limit {
			return judgments
		}
	}
	size := len("[]")
	for i := range judgments {
		size += encodedLen(judgments[i]) + len(",")
		if size > limit {
			return judgments[:i:i]
		}
	}
	return judgments
}

// checkJudgments refuses judgments that cannot be answers to the questions of a spec, or that no judge can have made.
func checkJudgments(spec *v1alpha1.EvalSpec, judgments []v1alpha1.Judgment) error {
	if err := rubric.CheckJudgments(spec, judgments); err != nil {
		return refuse(http.StatusUnprocessableEntity, reasonJudgments, "%v", err)
	}
	for _, j := range judgments {
		if err := checkUsage(j); err != nil {
			return refuse(http.StatusUnprocessableEntity, reasonJudgments, "judgment of question %q of rubric %q: %v", j.Question, j.Rubric, err)
		}
	}
	return nil
}

func checkUsage(j v1alpha1.Judgment) error {
	u := j.Usage
	if len(j.Model) > maxModelBytes {
		return fmt.Errorf("the name of the model is longer than %d bytes", maxModelBytes)
	}
	for _, n := range []int32{u.Calls, u.Retries, u.UnpricedCalls} {
		if n < 0 || n > maxCallsPerJudgment {
			return fmt.Errorf("it cannot have taken %d calls", n)
		}
	}
	for _, n := range []int64{u.InputTokens, u.CachedInputTokens, u.OutputTokens} {
		if n < 0 || n > maxTokensPerJudgment {
			return fmt.Errorf("it cannot have taken %d tokens", n)
		}
	}
	if !(u.CostUSD >= 0 && u.CostUSD <= maxCostPerJudgment) {
		return fmt.Errorf("it cannot have cost %v US dollars", u.CostUSD)
	}
	return nil
}

// merge joins the judgments of a runner with those that were kept: an answer that was kept wins, since it may be what
// an earlier pod was told. Of the same answer the longer words are taken: what is kept is cut.
func merge(kept, sent []v1alpha1.Judgment) []v1alpha1.Judgment {
	first := make(map[v1alpha1.QuestionKey]v1alpha1.Judgment, len(kept))
	for _, j := range kept {
		if j.Score != nil {
			first[j.QuestionKey] = j
		}
	}
	out := make([]v1alpha1.Judgment, 0, max(len(kept), len(sent)))
	for _, j := range sent {
		if k, ok := first[j.QuestionKey]; ok {
			if sameAnswer(k, j) {
				k.Reason, k.Evidence = uncut(k.Reason, j.Reason), uncut(k.Evidence, j.Evidence)
			}
			j = k
			delete(first, j.QuestionKey)
		}
		out = append(out, j)
	}
	for _, j := range kept {
		if _, missing := first[j.QuestionKey]; missing {
			out = append(out, first[j.QuestionKey])
			delete(first, j.QuestionKey)
		}
	}
	return out
}

func sameAnswer(a, b v1alpha1.Judgment) bool {
	return b.Score != nil && *a.Score == *b.Score && a.Model == b.Model && a.Usage == b.Usage
}

// uncut is whole when cut was made of it, else cut.
func uncut(cut, whole string) string {
	if start, ok := strings.CutSuffix(cut, report.CutMark); ok && strings.HasPrefix(whole, start) {
		return whole
	}
	if cut == "" {
		return whole
	}
	return cut
}
