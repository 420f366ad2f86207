package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/convert"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/nearest"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// Selected are the evals that the set runs: all, as they stand in the files; or, when it has EvalRuns, those that these
// choose, in name order as in a cluster. A note tells how many are left out then. The error is Problems.
func (s *Set) Selected() ([]plan.NamedEval, error) {
	if len(s.Runs) == 0 {
		return slices.Clone(s.Evals), nil
	}
	var evals []plan.NamedEval
	var problems Problems
	for i := range s.Runs {
		chosen, problem := s.chosen(&s.Runs[i])
		problems = append(problems, problem...)
		for _, e := range chosen {
			if !slices.ContainsFunc(evals, func(other plan.NamedEval) bool { return other.Name == e.Name }) {
				evals = append(evals, e)
			}
		}
	}
	slices.SortStableFunc(evals, func(a, b plan.NamedEval) int { return cmp.Compare(a.Name, b.Name) })
	if len(problems) == 0 {
		s.noteLeftOut(evals)
	}
	return evals, problems.orNil()
}

// maxNamed is how many evals a note names.
const maxNamed = 3

// noteLeftOut notes which evals of the files the EvalRuns do not choose.
func (s *Set) noteLeftOut(chosen []plan.NamedEval) {
	left := 0
	for _, e := range s.Evals {
		if !slices.ContainsFunc(chosen, func(c plan.NamedEval) bool { return c.Name == e.Name }) {
			left++
		}
	}
	if left == 0 {
		return
	}
	var names []string
	for _, e := range chosen[:min(len(chosen), maxNamed)] {
		names = append(names, e.Name)
	}
	if more := len(chosen) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	d := s.documents[objectKey{KindEvalRun, runName(&s.Runs[0])}]
	who := fmt.Sprintf("EvalRun %q chooses", runName(&s.Runs[0]))
	if len(s.Runs) > 1 {
		who = fmt.Sprintf("the %d EvalRuns choose", len(s.Runs))
	}
	noun := "evals are"
	if left == 1 {
		noun = "eval is"
	}
	s.note(problemAt(d, "", "%d %s not graded: %s %s", left, noun, who, strings.Join(names, ", ")))
}

// runName is what an EvalRun is known by.
func runName(run *v1alpha1.EvalRun) string { return cmp.Or(run.Name, run.GenerateName) }

// chosen are the evals that one EvalRun chooses.
func (s *Set) chosen(run *v1alpha1.EvalRun) ([]plan.NamedEval, Problems) {
	d := s.documents[objectKey{KindEvalRun, runName(run)}]
	var evals []plan.NamedEval
	switch spec := &run.Spec; {
	case spec.Eval != nil:
		return []plan.NamedEval{{Name: runName(run), Spec: *spec.Eval}}, nil
	case spec.EvalRef != nil:
		for _, e := range s.Evals {
			if e.Name == spec.EvalRef.Name {
				evals = append(evals, e)
			}
		}
		if len(evals) == 0 {
			return nil, Problems{problemAt(d, "spec.evalRef.name", "Eval %q is not in these files%s", convert.Clip(spec.EvalRef.Name), nearest.Hint(spec.EvalRef.Name, s.evalNames()))}
		}
	case spec.EvalSelector != nil:
		for _, e := range s.Evals {
			if matches(s.labels[e.Name], spec.EvalSelector.MatchLabels) {
				evals = append(evals, e)
			}
		}
		if len(evals) == 0 {
			return nil, Problems{problemAt(d, "spec.evalSelector", "no Eval in these files has these labels")}
		}
	}
	return evals, nil
}

func matches(labels map[string]string, wanted map[string]v1alpha1.LabelValue) bool {
	for key, value := range wanted {
		if got, ok := labels[key]; !ok || got != string(value) {
			return false
		}
	}
	return true
}

// Catalog is what the evals of the set can refer to.
func (s *Set) Catalog() plan.Catalog {
	return plan.Catalog{Rubrics: s.Rubrics, ConfigMaps: s.ConfigMaps}
}

// Check checks all evals and runs of the set, whether they are chosen or not. The error is Problems: each name that is
// not in the files, what is wrong with evals once their references are followed, and judge models that cannot be asked
// whatever keys there are.
func (s *Set) Check() error {
	var problems Problems
	for i := range s.Evals {
		problems = append(problems, s.ungradable(&s.Evals[i])...)
	}
	for i := range s.Runs {
		_, missing := s.chosen(&s.Runs[i])
		problems = append(problems, missing...)
		if eval := s.Runs[i].Spec.Eval; eval != nil {
			name := runName(&s.Runs[i])
			problems = append(problems, s.ungradable(&plan.NamedEval{Name: name, Spec: *eval})...)
		}
	}
	return problems.orNil()
}

// ungradable is why an eval could not be graded even with every key there is (S-24).
func (s *Set) ungradable(e *plan.NamedEval) Problems {
	if problems := s.invalid(e); len(problems) > 0 {
		return problems
	}
	override, err := s.judgeModel()
	if err != nil {
		return nil //nolint:nilerr // Plan says it
	}
	p, err := plan.Make([]plan.NamedEval{*e}, s.Catalog(), plan.Options{JudgeModel: override})
	if err != nil {
		return nil //nolint:nilerr // invalid has said it
	}
	var problems Problems
	d, spec := s.document(e)
	for i := range p.Rows {
		if _, err := judge.ResolveModel(p.Rows[i].Spec.Judge, "", "", judge.EveryKey()); err != nil {
			path := spec + ".judge"
			switch {
			case e.Spec.Matrix != nil && len(e.Spec.Matrix.Models) > 0:
				path = spec + ".matrix.models"
			case override == "" && e.Spec.Judge != nil && e.Spec.Judge.Model != "":
				path = spec + ".judge.model"
			}
			problem := problemAt(d, path, "%v", err)
			if !slices.Contains(problems, problem) { // each prompt of a matrix asks the same model
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

// document is where an eval stands, and its spec in it: an Eval, or the eval inside an EvalRun.
func (s *Set) document(e *plan.NamedEval) (*document, string) {
	if d, ok := s.documents[objectKey{KindEvalRun, e.Name}]; ok && d.object.(*v1alpha1.EvalRun).Spec.Eval != nil {
		if _, both := s.documents[objectKey{KindEval, e.Name}]; !both {
			return d, "spec.eval"
		}
	}
	return s.documents[objectKey{KindEval, e.Name}], "spec"
}

// unresolved are the references of an eval to what is not in the files.
func (s *Set) unresolved(e *plan.NamedEval) Problems {
	var problems Problems
	d, spec := s.document(e)
	rubric := func(ref, path string) {
		if _, ok := s.Rubrics[ref]; ref != "" && !ok {
			problems = append(problems, problemAt(d, path+".ref", "Rubric %q is not in these files%s", convert.Clip(ref), nearest.Hint(ref, slices.Collect(maps.Keys(s.Rubrics)))))
		}
	}
	if e.Spec.Rubric != nil {
		rubric(e.Spec.Rubric.Ref, spec+".rubric")
	}
	for i := range e.Spec.Rubrics {
		rubric(e.Spec.Rubrics[i].Ref, fmt.Sprintf("%s.rubrics[%d]", spec, i))
	}
	if e.Spec.ResponseFrom == nil {
		return problems
	}
	ref, path := e.Spec.ResponseFrom.ConfigMapKeyRef, spec+".responseFrom.configMapKeyRef"
	data, ok := s.ConfigMaps[ref.Name]
	if _, has := data[ref.Key]; !ok {
		problems = append(problems, problemAt(d, path+".name", "ConfigMap %q is not in these files%s", convert.Clip(ref.Name), nearest.Hint(ref.Name, slices.Collect(maps.Keys(s.ConfigMaps)))))
	} else if !has {
		problems = append(problems, problemAt(d, path+".key", "ConfigMap %q has no key %q%s", ref.Name, convert.Clip(ref.Key), nearest.Hint(ref.Key, slices.Collect(maps.Keys(data)))))
	}
	return problems
}

// Plan plans a run of the selected evals. The judge model of the set's EvalRuns counts where the options have none.
// The error is Problems: what the files lack, and what is wrong with evals once their references are followed.
func (s *Set) Plan(o plan.Options) (*plan.Plan, error) {
	evals, err := s.Selected()
	if err != nil {
		return nil, err
	}
	if o.JudgeModel == "" {
		o.JudgeModel, err = s.judgeModel()
	}
	var p *plan.Plan
	if err == nil {
		if p, err = plan.Make(evals, s.Catalog(), o); err == nil {
			return p, nil
		}
		err = Problems{{Position: Position{File: s.Files[0]}, Message: err.Error()}}
	}
	// The plan tells of one problem, and does not know lines: those of each eval come first.
	var problems Problems
	for i := range evals {
		problems = append(problems, s.invalid(&evals[i])...)
	}
	if len(problems) > 0 {
		return nil, problems.orNil()
	}
	return nil, err
}

// invalid is what is wrong with an eval once its references are followed.
func (s *Set) invalid(e *plan.NamedEval) Problems {
	if problems := s.unresolved(e); len(problems) > 0 {
		return problems
	}
	_, err := plan.Make([]plan.NamedEval{*e}, s.Catalog(), plan.Options{})
	d, spec := s.document(e)
	var invalid *plan.InvalidError
	if errors.As(err, &invalid) {
		var problems Problems
		for _, p := range invalid.Problems {
			path := spec + p.Field[min(len("spec"), len(p.Field)):]
			problems = append(problems, invalidField(d, path, p))
		}
		return problems
	}
	if err != nil {
		return Problems{problemAt(d, "", "%v", err)}
	}
	return nil
}

// judgeModel is the model that the EvalRuns of the set override the judge with; empty when none does.
func (s *Set) judgeModel() (v1alpha1.ModelName, error) {
	var model v1alpha1.ModelName
	for i := range s.Runs {
		var own v1alpha1.ModelName
		if s.Runs[i].Spec.Judge != nil {
			own = s.Runs[i].Spec.Judge.Model
		}
		if i > 0 && own != model {
			d := s.documents[objectKey{KindEvalRun, runName(&s.Runs[i])}]
			return "", Problems{problemAt(d, "spec.judge", "the EvalRuns of these files override the judge differently; load one of them at a time")}
		}
		model = own
	}
	return model, nil
}
