package judge

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

const (
	anthropicP = v1alpha1.ProviderAnthropic
	openaiP    = v1alpha1.ProviderOpenAI
)

func TestProviderOf(t *testing.T) {
	for name, want := range map[string]v1alpha1.Provider{
		"claude-sonnet-5-5": anthropicP, "Claude-x": anthropicP, "gpt-4.1": openaiP, "chatgpt-4o-latest": openaiP, "o3": openaiP, "o4-mini": openaiP,
		"gemini-3-pro": "", "mistral-large": "", "llama3": "", "olmo": "", "o": "", "": "", "gpt4": "",
	} {
		if got, ok := ProviderOf(name); got != want || ok != (want != "") {
			t.Errorf("ProviderOf(%q) = %q, %v; want %q", name, got, ok, want)
		}
	}
}

func TestResolveModel(t *testing.T) {
	both := Env{Keys: map[v1alpha1.Provider]bool{anthropicP: true, openaiP: true}}
	openaiOnly := Env{Keys: map[v1alpha1.Provider]bool{openaiP: true}}
	named := Env{Model: "gpt-env", Keys: both.Keys}
	tests := map[string]struct {
		spec           *v1alpha1.JudgeSpec
		override, cell v1alpha1.ModelName
		env            Env
		want           []Model
		// err is a part of the error; deferred says of which kind it is.
		err      string
		deferred bool
	}{
		"the cell comes first":                 {spec: &v1alpha1.JudgeSpec{Model: "gpt-spec"}, cell: "gpt-cell", override: "gpt-run", env: named, want: []Model{{Name: "gpt-cell", Provider: openaiP}}},
		"then the run's override":              {spec: &v1alpha1.JudgeSpec{Model: "gpt-spec"}, override: "claude-run", env: named, want: []Model{{Name: "claude-run", Provider: anthropicP}}},
		"then judge.model":                     {spec: &v1alpha1.JudgeSpec{Model: "gpt-spec"}, env: named, want: []Model{{Name: "gpt-spec", Provider: openaiP}}},
		"then MCPTEST_JUDGE_MODEL":             {env: named, want: []Model{{Name: "gpt-env", Provider: openaiP}}},
		"then the first provider with a key":   {env: both, want: []Model{{Name: string(DefaultAnthropicModel), Provider: anthropicP}}},
		"which may be the second":              {env: openaiOnly, want: []Model{{Name: string(DefaultOpenAIModel), Provider: openaiP}}},
		"the default of judge.provider":        {spec: &v1alpha1.JudgeSpec{Provider: openaiP}, env: both, want: []Model{{Name: string(DefaultOpenAIModel), Provider: openaiP}}},
		"judge.provider for any model":         {spec: &v1alpha1.JudgeSpec{Model: "llama3", Provider: openaiP}, env: both, want: []Model{{Name: "llama3", Provider: openaiP}}},
		"a gateway for Claude":                 {spec: &v1alpha1.JudgeSpec{Model: "claude-x", Provider: openaiP}, env: both, want: []Model{{Name: "claude-x", Provider: openaiP}}},
		"temperature":                          {spec: &v1alpha1.JudgeSpec{Model: "gpt-x", Temperature: ptr(0.7)}, env: both, want: []Model{{Name: "gpt-x", Provider: openaiP, Temperature: ptr(0.7)}}},
		"a panel stays as it is":               {spec: &v1alpha1.JudgeSpec{Panel: []v1alpha1.ModelName{"gpt-a", "claude-b"}}, override: "gpt-run", env: both, want: []Model{{Name: "gpt-a", Provider: openaiP}, {Name: "claude-b", Provider: anthropicP}}},
		"no key at all":                        {env: Env{}, err: "set ANTHROPIC_API_KEY or OPENAI_API_KEY", deferred: true},
		"no key for the model's provider":      {cell: "claude-x", env: openaiOnly, err: "set ANTHROPIC_API_KEY", deferred: true},
		"no key for a member of a panel":       {spec: &v1alpha1.JudgeSpec{Panel: []v1alpha1.ModelName{"gpt-a", "claude-b"}}, env: openaiOnly, err: "claude-b: set ANTHROPIC_API_KEY", deferred: true},
		"no key for judge.provider":            {spec: &v1alpha1.JudgeSpec{Provider: anthropicP}, env: openaiOnly, err: "set ANTHROPIC_API_KEY", deferred: true},
		"a provider this version has not":      {cell: "gemini-3-pro", env: both, err: "no provider for Google"},
		"another one":                          {cell: "codestral-2", env: both, err: "judge.provider: openai and OPENAI_BASE_URL"},
		"a name that tells nothing":            {cell: "llama3", env: both, err: "set judge.provider to anthropic or openai"},
		"an unknown judge.provider":            {spec: &v1alpha1.JudgeSpec{Provider: "acme", Model: "x"}, env: both, err: "write anthropic or openai"},
		"a model of OpenAI asked of Anthropic": {spec: &v1alpha1.JudgeSpec{Provider: anthropicP, Model: "gpt-x"}, env: both, err: "change judge.provider or the model"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ResolveModel(tt.spec, tt.override, tt.cell, tt.env)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("error = %v, want %q", err, tt.err)
			}
			var deferred *DeferredError
			if errors.As(err, &deferred) != tt.deferred {
				t.Errorf("error %v: deferred = %v, want %v (S-38)", err, !tt.deferred, tt.deferred)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("models (-want +got):\n%s", diff)
			}
		})
	}
}
