package redact

import "github.com/mcptest/mcptest-operator/api/v1alpha1"

// Findings redacts, in place, what judges wrote and what went wrong. The keys of the questions stay as they are: scores are
// computed by them.
func (r *Redactor) Findings(f *v1alpha1.Findings) {
	if f == nil {
		return
	}
	r.fields(&f.Deferred, &f.Error)
	for i := range f.Judgments {
		j := &f.Judgments[i]
		r.fields(&j.Reason, &j.Evidence, &j.Error)
	}
}

// Report redacts, in place, every text of a report that users or models wrote. Digests, models and enumerated values stay.
func (r *Redactor) Report(p *v1alpha1.Report) {
	if p == nil {
		return
	}
	r.fields(&p.Name, &p.Eval, &p.Note)
	if p.Cell != nil {
		r.fields(&p.Cell.Prompt)
	}
	if p.Candidate != nil {
		r.fields(&p.Candidate.Excerpt)
	}
	for i := range p.Rubrics {
		b := &p.Rubrics[i]
		r.fields(&b.Name, &b.Reason)
		r.criteria(b.Criteria)
		r.path(b.Path, b.Leaf)
		for j := range b.Members {
			m := &b.Members[j]
			r.fields(&m.Error, &m.Reason)
			r.criteria(m.Criteria)
			r.path(m.Path, m.Leaf)
		}
	}
}

// RunReport redacts, in place, the reports of a run's rows.
func (r *Redactor) RunReport(p *v1alpha1.RunReport) {
	if p == nil {
		return
	}
	for i := range p.Rows {
		r.Report(&p.Rows[i])
	}
}

func (r *Redactor) criteria(list []v1alpha1.CriterionReport) {
	for i := range list {
		c := &list[i]
		r.fields(&c.Name, &c.Reason, &c.Evidence, &c.Error)
	}
}

func (r *Redactor) path(steps []v1alpha1.TreeStep, leaf *v1alpha1.TreeLeaf) {
	for i := range steps {
		r.fields(&steps[i].Ask, &steps[i].Reason)
	}
	if leaf != nil {
		r.fields(&leaf.Reason)
	}
}

func (r *Redactor) fields(all ...*string) {
	for _, s := range all {
		*s = r.String(*s)
	}
}
