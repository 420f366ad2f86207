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
	geminiP    = v1alpha1.ProviderGemini
	mistralP   = v1alpha1.ProviderMistral
)

func TestProviderOf(t *testing.T) {
	for name, want := range map[string]v1alpha1.Provider{
		"claude-sonnet-5-5": anthropicP, "Claude-x": anthropicP, "gpt-4.1": openaiP, "chatgpt-4o-latest": openaiP, "o3": openaiP, "o4-mini": openaiP,
		"gemini-3.8-flash": geminiP, "Gemini-x": geminiP, "mistral-large-latest": mistralP, "codestral-2508": mistralP, "magistral-medium": mistralP,
		"ministral-8b-2512": mistralP, "devstral-2512": mistralP,
		"llama3": "", "olmo": "", "o": "", "": "", "gpt4": "", "gemini": "", "open-mistral-nemo": "", "models/gemini-x": "", "mistralai/x": "",
	} {
		if got, ok := ProviderOf(name); got != want || ok != (want != "") {
			t.Errorf("ProviderOf(%q) = %q, %v; want %q", name, got, ok, want)
		}
	}
}

func TestS24KeysOfAProvider(t *testing.T) {
	tests := map[string]struct {
		provider  v1alpha1.Provider
		env       map[string]string
		variables []string
		hint, key string
	}{
		"one variable":                        {openaiP, map[string]string{"OPENAI_API_KEY": " k\n", "GOOGLE_API_KEY": "g"}, []string{"OPENAI_API_KEY"}, "OPENAI_API_KEY", "k"},
		"no key":                              {mistralP, nil, []string{"MISTRAL_API_KEY"}, "MISTRAL_API_KEY", ""},
		"GEMINI_API_KEY wins":                 {geminiP, map[string]string{"GEMINI_API_KEY": "k", "GOOGLE_API_KEY": "g"}, []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "GEMINI_API_KEY (or GOOGLE_API_KEY)", "k"},
		"GOOGLE_API_KEY counts without it":    {geminiP, map[string]string{"GOOGLE_API_KEY": "g"}, []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "GEMINI_API_KEY (or GOOGLE_API_KEY)", "g"},
		"and when GEMINI_API_KEY is blank":    {geminiP, map[string]string{"GEMINI_API_KEY": " ", "GOOGLE_API_KEY": "g"}, []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "GEMINI_API_KEY (or GOOGLE_API_KEY)", "g"},
		"no other provider has Google's name": {anthropicP, map[string]string{"GOOGLE_API_KEY": "g"}, []string{"ANTHROPIC_API_KEY"}, "ANTHROPIC_API_KEY", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.variables, KeyVariables(tt.provider)); diff != "" || KeyVariable(tt.provider) != tt.variables[0] {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
			if got := KeyHint(tt.provider); got != tt.hint {
				t.Errorf("hint %q, want %q", got, tt.hint)
			}
			if got := Key(tt.provider, func(name string) string { return tt.env[name] }); got != tt.key {
				t.Errorf("key %q, want %q", got, tt.key)
			}
		})
	}
}

func TestResolveModel(t *testing.T) {
	all := Env{Keys: map[v1alpha1.Provider]bool{anthropicP: true, openaiP: true, geminiP: true, mistralP: true}}
	geminiOnly := Env{Keys: map[v1alpha1.Provider]bool{geminiP: true, mistralP: true}}
	mistralOnly := Env{Keys: map[v1alpha1.Provider]bool{mistralP: true}}
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
		"the cell comes first":                  {spec: &v1alpha1.JudgeSpec{Model: "gpt-spec"}, cell: "gpt-cell", override: "gpt-run", env: named, want: []Model{{Name: "gpt-cell", Provider: openaiP}}},
		"then the run's override":               {spec: &v1alpha1.JudgeSpec{Model: "gpt-spec"}, override: "claude-run", env: named, want: []Model{{Name: "claude-run", Provider: anthropicP}}},
		"then judge.model":                      {spec: &v1alpha1.JudgeSpec{Model: "gpt-spec"}, env: named, want: []Model{{Name: "gpt-spec", Provider: openaiP}}},
		"then MCPTEST_JUDGE_MODEL":              {env: named, want: []Model{{Name: "gpt-env", Provider: openaiP}}},
		"then the first provider with a key":    {env: both, want: []Model{{Name: string(DefaultAnthropicModel), Provider: anthropicP}}},
		"which may be the second":               {env: openaiOnly, want: []Model{{Name: string(DefaultOpenAIModel), Provider: openaiP}}},
		"the default of judge.provider":         {spec: &v1alpha1.JudgeSpec{Provider: openaiP}, env: both, want: []Model{{Name: string(DefaultOpenAIModel), Provider: openaiP}}},
		"judge.provider for any model":          {spec: &v1alpha1.JudgeSpec{Model: "llama3", Provider: openaiP}, env: both, want: []Model{{Name: "llama3", Provider: openaiP}}},
		"a gateway for Claude":                  {spec: &v1alpha1.JudgeSpec{Model: "claude-x", Provider: openaiP}, env: both, want: []Model{{Name: "claude-x", Provider: openaiP}}},
		"temperature":                           {spec: &v1alpha1.JudgeSpec{Model: "gpt-x", Temperature: ptr(0.7)}, env: both, want: []Model{{Name: "gpt-x", Provider: openaiP, Temperature: ptr(0.7)}}},
		"a panel stays as it is":                {spec: &v1alpha1.JudgeSpec{Panel: []v1alpha1.ModelName{"gpt-a", "claude-b"}}, override: "gpt-run", env: both, want: []Model{{Name: "gpt-a", Provider: openaiP}, {Name: "claude-b", Provider: anthropicP}}},
		"no key at all":                         {env: Env{}, err: "set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY (or GOOGLE_API_KEY) or MISTRAL_API_KEY", deferred: true},
		"no key for the model's provider":       {cell: "claude-x", env: openaiOnly, err: "set ANTHROPIC_API_KEY", deferred: true},
		"no key for a model of Google":          {cell: "gemini-x", env: both, err: "no key for gemini, which offers the judge model gemini-x: set GEMINI_API_KEY (or GOOGLE_API_KEY)", deferred: true},
		"no key for a member of a panel":        {spec: &v1alpha1.JudgeSpec{Panel: []v1alpha1.ModelName{"gpt-a", "claude-b"}}, env: openaiOnly, err: "claude-b: set ANTHROPIC_API_KEY", deferred: true},
		"no key for judge.provider":             {spec: &v1alpha1.JudgeSpec{Provider: anthropicP}, env: openaiOnly, err: "set ANTHROPIC_API_KEY", deferred: true},
		"the third is gemini":                   {env: geminiOnly, want: []Model{{Name: string(DefaultGeminiModel), Provider: geminiP}}},
		"the last is mistral":                   {env: mistralOnly, want: []Model{{Name: string(DefaultMistralModel), Provider: mistralP}}},
		"a panel of all vendors":                {spec: &v1alpha1.JudgeSpec{Panel: []v1alpha1.ModelName{"gemini-a", "codestral-b", "gpt-c"}}, env: all, want: []Model{{Name: "gemini-a", Provider: geminiP}, {Name: "codestral-b", Provider: mistralP}, {Name: "gpt-c", Provider: openaiP}}},
		"mistral for a name that tells nothing": {spec: &v1alpha1.JudgeSpec{Provider: mistralP, Model: "open-mistral-nemo"}, env: all, want: []Model{{Name: "open-mistral-nemo", Provider: mistralP}}},
		"gemini for a name that tells nothing":  {spec: &v1alpha1.JudgeSpec{Provider: geminiP, Model: "gemma-4"}, env: all, want: []Model{{Name: "gemma-4", Provider: geminiP}}},
		"a gateway for Gemini":                  {spec: &v1alpha1.JudgeSpec{Provider: openaiP, Model: "gemini-x"}, env: both, want: []Model{{Name: "gemini-x", Provider: openaiP}}},
		"a name that tells nothing":             {cell: "llama3", env: both, err: "set judge.provider to anthropic, openai, gemini or mistral (openai, with OPENAI_BASE_URL"},
		"an unknown judge.provider":             {spec: &v1alpha1.JudgeSpec{Provider: "acme", Model: "x"}, env: both, err: "write anthropic, openai, gemini or mistral"},
		"a model of OpenAI asked of Anthropic":  {spec: &v1alpha1.JudgeSpec{Provider: anthropicP, Model: "gpt-x"}, env: both, err: "judge.provider is anthropic, and gpt-x is a model of openai: change judge.provider or the model"},
		"a model of Mistral asked of Anthropic": {spec: &v1alpha1.JudgeSpec{Provider: anthropicP, Model: "mistral-x"}, env: all, err: "mistral-x is a model of mistral"},
		"a model of Anthropic asked of Gemini":  {spec: &v1alpha1.JudgeSpec{Provider: geminiP, Model: "claude-x"}, env: all, err: "judge.provider is gemini, and claude-x is a model of anthropic"},
		"a model of Google asked of Mistral":    {spec: &v1alpha1.JudgeSpec{Provider: mistralP, Model: "gemini-x"}, env: all, err: "judge.provider is mistral, and gemini-x is a model of gemini"},
		"the cell's model too":                  {spec: &v1alpha1.JudgeSpec{Provider: geminiP}, cell: "gpt-x", env: all, err: "change judge.provider or the model"},
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
