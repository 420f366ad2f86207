package runtree_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

// sliced are the names of the leaves of each slice.
func sliced(job *batchv1.Job, leaves []*v1alpha1.EvalRun) [][]string {
	var out [][]string
	for _, s := range runtree.Slices(job, leaves) {
		names := []string{}
		for _, leaf := range leaves[s.From:s.To] {
			names = append(names, leaf.Name)
		}
		out = append(out, names)
	}
	return out
}

func TestASliceKeepsItsRowsWhenChildrenAreDeleted(t *testing.T) {
	var all []*v1alpha1.EvalRun
	for n := range 12 {
		run := child(runtree.ChildName("run", n, 12), "root")
		all = append(all, &run)
	}
	job := &batchv1.Job{Spec: batchv1.JobSpec{Completions: new(int32(3))}}
	runtree.FreezeSlices(job, all)
	whole := [][]string{
		{"run-00", "run-01", "run-02", "run-03"}, {"run-04", "run-05", "run-06", "run-07"}, {"run-08", "run-09", "run-10", "run-11"},
	}
	for name, tc := range map[string]struct {
		gone func(i int) bool
		want [][]string
	}{
		"none":                 {func(int) bool { return false }, whole},
		"one":                  {func(i int) bool { return i == 11 }, [][]string{whole[0], whole[1], whole[2][:3]}},
		"the first of one":     {func(i int) bool { return i == 4 }, [][]string{whole[0], whole[1][1:], whole[2]}},
		"all of one":           {func(i int) bool { return i < 4 }, [][]string{{}, whole[1], whole[2]}},
		"all but the last":     {func(i int) bool { return i < 11 }, [][]string{{}, {}, whole[2][3:]}},
		"all but the first":    {func(i int) bool { return i > 0 }, [][]string{whole[0][:1], {}, {}}},
		"those between slices": {func(i int) bool { return i == 3 || i == 4 }, [][]string{whole[0][:3], whole[1][1:], whole[2]}},
	} {
		t.Run(name, func(t *testing.T) {
			left := slices.Clone(all)
			for i := len(all) - 1; i >= 0; i-- {
				if tc.gone(i) {
					left = slices.Delete(left, i, i+1)
				}
			}
			if diff := cmp.Diff(tc.want, sliced(job, left)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, text := range map[string]string{"nothing": "", "too few": "0,4", "words": "0,four,8", "no order": "8,4,0"} {
		job.Annotations["eval.mcptest.dev/slices"] = text
		if diff := cmp.Diff(whole, sliced(job, all)); diff != "" {
			t.Errorf("%s frozen: %s", name, diff)
		}
	}
}

func TestARunThatGradesItsOnlyRowIsOneSlice(t *testing.T) {
	root := child("run-7", "nobody") // a root whose name ends as that of a child does
	root.OwnerReferences, root.Status.Row, root.Status.EvalSpec, root.Spec.Row, root.Spec.Eval = nil, root.Spec.Row, root.Spec.Eval, nil, nil
	job := &batchv1.Job{Spec: batchv1.JobSpec{Completions: new(int32(1))}}
	leaves := []*v1alpha1.EvalRun{&root}
	runtree.FreezeSlices(job, leaves)
	if diff := cmp.Diff([][]string{{"run-7"}}, sliced(job, leaves)); diff != "" || len(job.Annotations) > 0 {
		t.Errorf("%v: %s", job.Annotations, diff)
	}
}
