package runtree

import (
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/plan"
)

// annotationSlices is set on the Job of a run: the number of the first row of each slice, such as 0,250,500. With it a
// slice keeps its rows when somebody deletes a child: a collector that counts anew would give them to another pod.
const annotationSlices = "eval.mcptest.dev/slices"

// FreezeSlices writes into a new Job which of its indexes grades which leaves.
func FreezeSlices(job *batchv1.Job, leaves []*v1alpha1.EvalRun) {
	var first []string
	for _, slice := range plan.Slices(Calls(leaves), ptr.Deref(job.Spec.Completions, 1)) {
		n, ok := number(leaves[slice.From])
		if !ok {
			return // a run that grades its only row itself
		}
		first = append(first, strconv.Itoa(n))
	}
	if job.Annotations == nil {
		job.Annotations = make(map[string]string)
	}
	job.Annotations[annotationSlices] = strings.Join(first, ",")
}

// Slices are the leaves of each index of a Job, as ranges of leaves: as they were frozen, else counted anew. A slice all
// of whose leaves were deleted is empty.
func Slices(job *batchv1.Job, leaves []*v1alpha1.EvalRun) []plan.Slice {
	completions := ptr.Deref(job.Spec.Completions, 1)
	first := frozen(job)
	numbers := make([]int, len(leaves))
	for i, leaf := range leaves {
		n, ok := number(leaf)
		if !ok {
			first = nil
			break
		}
		numbers[i] = n
	}
	if int32(len(first)) != completions {
		return plan.Slices(Calls(leaves), completions)
	}
	out := make([]plan.Slice, len(first))
	for i := range out {
		out[i] = plan.Slice{From: 0, To: len(leaves)}
		if i > 0 {
			from, _ := slices.BinarySearch(numbers, first[i])
			out[i-1].To, out[i].From = from, from
		}
	}
	return out
}

// frozen reads what FreezeSlices wrote; nil when it is not there, or somebody changed it into something else.
func frozen(job *batchv1.Job) []int {
	var first []int
	for text := range strings.SplitSeq(job.Annotations[annotationSlices], ",") {
		n, err := strconv.Atoi(text)
		if err != nil || len(first) > 0 && n <= first[len(first)-1] {
			return nil
		}
		first = append(first, n)
	}
	return first
}

// number is which row of its run a child grades, as ChildName put it into its name; false for a root.
func number(leaf *v1alpha1.EvalRun) (int, bool) {
	if !IsChild(leaf) {
		return 0, false
	}
	n, err := strconv.Atoi(leaf.Name[strings.LastIndexByte(leaf.Name, '-')+1:])
	return n, err == nil
}
