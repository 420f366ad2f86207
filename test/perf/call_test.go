package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/judge/providers"
	"github.com/mcptest/mcptest-operator/engine/redact"
	"github.com/mcptest/mcptest-operator/engine/rubric"
	"github.com/mcptest/mcptest-operator/hack/fakejudge"
	"github.com/mcptest/mcptest-operator/test/local"
)

// answering is a client that answers at once, so that what is left is this program's own work.
type answering struct{}

func (answering) Complete(context.Context, judge.Request) (judge.Response, error) {
	return judge.Response{
		Answer: judge.Answer{Text: `{"reason":"It says so in its second sentence.","score":0.9}`, Structured: true},
		Tokens: judge.Tokens{Input: 1200, CacheRead: 800, Output: 60},
	}, nil
}

// gradeRows grades b.N rows of 5 criteria and reports what one call of them took.
func gradeRows(b *testing.B, clients map[v1alpha1.Provider]judge.Client) {
	b.Helper()
	g := &rubric.Grader{
		Asker: judge.New(judge.Options{Clients: clients}), Now: time.Now,
		Env: judge.Env{Keys: map[v1alpha1.Provider]bool{v1alpha1.ProviderAnthropic: true}},
	}
	redactor := redact.New("no-real-key")
	spec := evalsOf("perf", load{rows: 1, criteria: 5})[0].Spec
	spec.Matrix = nil
	b.ReportAllocs()
	for b.Loop() {
		findings, err := g.Grade(b.Context(), &spec, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		redactor.Findings(&findings)
		if r := rubric.Score(v1alpha1.Row{Name: "row", Eval: "row"}, &spec, findings); r.Outcome != v1alpha1.OutcomePassed {
			b.Fatal(fmt.Sprint(r.Outcome, r.Note))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(spec.Rubric.Criteria)), "ns/call")
}

// BenchmarkRow is a row of 5 criteria without the network: prompts, verdicts, redaction, score.
func BenchmarkRow(b *testing.B) {
	gradeRows(b, map[v1alpha1.Provider]judge.Client{v1alpha1.ProviderAnthropic: answering{}})
}

// BenchmarkRowOverHTTP is the same through the provider's SDK and a local connection, the stand-in judge's own work included.
func BenchmarkRowOverHTTP(b *testing.B) {
	standIn, err := local.StartJudge(fakejudge.Options{Rules: fakejudge.Rules{Default: fakejudge.Default{Score: fakejudge.At(0.9)}}})
	if err != nil {
		b.Fatal(err)
	}
	defer standIn.Stop()
	keys := standIn.Keys("no-real-key")
	clients, _ := providers.FromEnv(func(name string) string { return keys[name] }, nil)
	gradeRows(b, clients)
}
