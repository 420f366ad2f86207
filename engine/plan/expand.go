package plan

import (
	"fmt"
	"strings"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// maxPromptInName is how many characters of a prompt the name of a row shows (S-31).
const maxPromptInName = 40

// expand makes a row of each cell of an eval's matrix, or one row without a matrix. The models are the outer axis.
func expand(name string, spec v1alpha1.EvalSpec) []Row {
	title := name
	if spec.Title != "" {
		title = spec.Title
	}
	if spec.Matrix == nil {
		return []Row{Leaf(v1alpha1.Row{Name: title, Eval: title}, spec)}
	}
	matrix := spec.Matrix
	spec.Matrix = nil
	models := matrix.Models
	if len(models) == 0 {
		models = []v1alpha1.ModelName{""}
	}
	prompts := matrix.Prompts
	if len(prompts) == 0 {
		prompts = []string{""}
	}
	var rows []Row
	for _, model := range models {
		for n, prompt := range prompts {
			cell := v1alpha1.Cell{Model: model, Prompt: prompt}
			id := v1alpha1.Row{Name: fmt.Sprintf("%s [%s]", title, coordinates(cell, n+1)), Eval: title, Cell: &cell}
			rows = append(rows, Leaf(id, inCell(spec, cell)))
		}
	}
	return rows
}

// coordinates names a cell: model=..., prompt=...; a long prompt is cut and numbered.
func coordinates(c v1alpha1.Cell, number int) string {
	var parts []string
	if c.Model != "" {
		parts = append(parts, "model="+string(c.Model))
	}
	if c.Prompt != "" {
		prompt := strings.Join(strings.Fields(c.Prompt), " ")
		if runes := []rune(prompt); len(runes) > maxPromptInName {
			prompt = fmt.Sprintf("%s… #%d", strings.TrimSpace(string(runes[:maxPromptInName])), number)
		}
		parts = append(parts, "prompt="+prompt)
	}
	return strings.Join(parts, ", ")
}

// inCell is an eval with the coordinates of a cell in their places.
func inCell(spec v1alpha1.EvalSpec, c v1alpha1.Cell) v1alpha1.EvalSpec {
	out := *spec.DeepCopy()
	if c.Prompt != "" {
		out.Prompt = c.Prompt
	}
	if c.Model != "" {
		if out.Judge == nil {
			out.Judge = &v1alpha1.JudgeSpec{}
		}
		out.Judge.Model = c.Model
	}
	return out
}

// Calls is how many judge calls a resolved eval makes in one cell, at most: judged questions times members (S-30).
// Nothing is judged without a candidate, nor about an empty one.
func Calls(spec *v1alpha1.EvalSpec) int32 {
	if spec.Response == nil || rubric.Empty(*spec.Response) {
		return 0
	}
	questions := 0
	for _, r := range rubric.Rubrics(spec) {
		questions += rubric.Calls(&r.RubricSpec)
	}
	return int32(questions * rubric.Members(spec.Judge))
}
