package judge

import (
	"fmt"
	"strings"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// The model that each provider is asked with when nothing names one (S-24): of late 2026 the ones that no
// provider has announced the end of, and that judge well for what they cost.
const (
	DefaultAnthropicModel v1alpha1.ModelName = "claude-sonnet-5-5"
	DefaultOpenAIModel    v1alpha1.ModelName = "gpt-5.4-mini"
	DefaultGeminiModel    v1alpha1.ModelName = "gemini-3.8-flash"
	DefaultMistralModel   v1alpha1.ModelName = "mistral-medium-3-5"
)

// ModelVariable is the environment variable that names the judge model for evals that name none (S-24).
const ModelVariable = "MCPTEST_JUDGE_MODEL"

// Providers lists the providers of this version, in the order in which a default is looked for (S-24).
func Providers() []v1alpha1.Provider {
	return []v1alpha1.Provider{
		v1alpha1.ProviderAnthropic, v1alpha1.ProviderOpenAI, v1alpha1.ProviderGemini, v1alpha1.ProviderMistral,
	}
}

// KeyVariable names the environment variable that holds a provider's key; where there are several, the one that wins.
func KeyVariable(p v1alpha1.Provider) string { return strings.ToUpper(string(p)) + "_API_KEY" }

// KeyVariables names all environment variables that may hold a provider's key, the one that wins first (S-24).
// All of them hold a secret, also the ones that lose (S-48).
func KeyVariables(p v1alpha1.Provider) []string {
	if p == v1alpha1.ProviderGemini {
		return []string{KeyVariable(p), "GOOGLE_API_KEY"}
	}
	return []string{KeyVariable(p)}
}

// KeyHint names, for a message, the variable to set: the one that wins, and in brackets what counts without it.
func KeyHint(p v1alpha1.Provider) string {
	names := KeyVariables(p)
	if len(names) == 1 {
		return names[0]
	}
	return names[0] + " (or " + strings.Join(names[1:], ", ") + ")"
}

// Key returns the key that the environment has for a provider, white space around it aside; "" when there is none (S-24).
func Key(p v1alpha1.Provider, getenv func(string) string) string {
	for _, name := range KeyVariables(p) {
		if key := strings.TrimSpace(getenv(name)); key != "" {
			return key
		}
	}
	return ""
}

// BaseURLVariable names the environment variable that holds a provider's base URL.
func BaseURLVariable(p v1alpha1.Provider) string { return strings.ToUpper(string(p)) + "_BASE_URL" }

// DefaultModel returns the model that a provider is asked with when nothing names one; "" for an unknown provider.
func DefaultModel(p v1alpha1.Provider) v1alpha1.ModelName {
	switch p {
	case v1alpha1.ProviderAnthropic:
		return DefaultAnthropicModel
	case v1alpha1.ProviderOpenAI:
		return DefaultOpenAIModel
	case v1alpha1.ProviderGemini:
		return DefaultGeminiModel
	case v1alpha1.ProviderMistral:
		return DefaultMistralModel
	default:
		return ""
	}
}

// Env is what the process's environment says about judges. It holds no key.
type Env struct {
	// Model is the value of MCPTEST_JUDGE_MODEL; empty when it is not set.
	Model v1alpha1.ModelName
	// Keys says which providers have a key.
	Keys map[v1alpha1.Provider]bool
}

// EveryKey is an environment in which every provider has a key: what could be asked, whatever keys there are.
func EveryKey() Env {
	env := Env{Keys: make(map[v1alpha1.Provider]bool)}
	for _, p := range Providers() {
		env.Keys[p] = true
	}
	return env
}

// DeferredError says that nothing can be judged because something is not configured (S-38).
type DeferredError struct {
	// Reason names what is missing, and the variable to set.
	Reason string
}

func (e *DeferredError) Error() string { return e.Reason }

// modelPrefixes are the beginnings of names that tell a provider (S-24).
var modelPrefixes = []struct {
	prefix   string
	provider v1alpha1.Provider
}{
	{"claude-", v1alpha1.ProviderAnthropic},
	{"gpt-", v1alpha1.ProviderOpenAI},
	{"chatgpt-", v1alpha1.ProviderOpenAI},
	{"gemini-", v1alpha1.ProviderGemini},
	{"mistral-", v1alpha1.ProviderMistral},
	{"codestral-", v1alpha1.ProviderMistral},
	{"magistral-", v1alpha1.ProviderMistral},
	{"ministral-", v1alpha1.ProviderMistral},
	{"devstral-", v1alpha1.ProviderMistral},
}

// ProviderOf tells the provider of a model by its name (S-24). It reports false for a name that tells none.
func ProviderOf(model string) (v1alpha1.Provider, bool) {
	name := strings.ToLower(model)
	for _, m := range modelPrefixes {
		if strings.HasPrefix(name, m.prefix) {
			return m.provider, true
		}
	}
	if len(name) >= 2 && name[0] == 'o' && '0' <= name[1] && name[1] <= '9' {
		return v1alpha1.ProviderOpenAI, true
	}
	return "", false
}

// ResolveModel says which models judge (S-24): those of the panel, in its order; else one, which the caller
// asks once for each member of a jury. spec may be nil.
//
// The model is the matrix cell's, else the run's override, else judge.model, else MCPTEST_JUDGE_MODEL, else the
// default of the provider: the one in judge.provider, or the first that has a key. judge.provider, where it is set,
// is asked for whatever model was chosen. Neither cell nor override replaces a panel (S-29).
//
// The error is a *DeferredError when there is no model or no key (S-38), and a plain one when the choice is wrong.
func ResolveModel(spec *v1alpha1.JudgeSpec, override, cell v1alpha1.ModelName, env Env) ([]Model, error) {
	if spec == nil {
		spec = &v1alpha1.JudgeSpec{}
	}
	names := spec.Panel
	if len(names) == 0 {
		name, err := chooseModel(spec, override, cell, env)
		if err != nil {
			return nil, err
		}
		names = []v1alpha1.ModelName{name}
	}
	models := make([]Model, 0, len(names))
	for _, name := range names {
		p, err := chooseProvider(name, spec.Provider)
		if err != nil {
			return nil, err
		}
		if !env.Keys[p] {
			return nil, noKey(p, name)
		}
		models = append(models, Model{Name: string(name), Provider: p, Temperature: spec.Temperature})
	}
	return models, nil
}

// noKey says that a model cannot be asked without a key (S-38).
func noKey(p v1alpha1.Provider, model v1alpha1.ModelName) error {
	return &DeferredError{Reason: fmt.Sprintf("no key for %s, which offers the judge model %s: set %s", p, model, KeyHint(p))}
}

// chooseModel returns the one model of an eval without a panel.
func chooseModel(spec *v1alpha1.JudgeSpec, override, cell v1alpha1.ModelName, env Env) (v1alpha1.ModelName, error) {
	for _, name := range []v1alpha1.ModelName{cell, override, spec.Model, env.Model} {
		if name != "" {
			return name, nil
		}
	}
	if spec.Provider != "" {
		return DefaultModel(spec.Provider), nil
	}
	keys := make([]string, 0, len(Providers()))
	for _, p := range Providers() {
		if env.Keys[p] {
			return DefaultModel(p), nil
		}
		keys = append(keys, KeyHint(p))
	}
	return "", &DeferredError{Reason: "no judge is configured: set " + alternatives(keys)}
}

// chooseProvider returns the provider of a model: the one that was said outright, else the one that its name tells.
func chooseProvider(model v1alpha1.ModelName, said v1alpha1.Provider) (v1alpha1.Provider, error) {
	told, ok := ProviderOf(string(model))
	switch {
	case said == "" && ok:
		return told, nil
	case said == "":
		return "", unknownProvider(model)
	case DefaultModel(said) == "":
		return "", fmt.Errorf("judge.provider %q is not known: write %s", said, alternatives(Providers()))
	case ok && said != told && said != v1alpha1.ProviderOpenAI:
		return "", fmt.Errorf("judge.provider is %s, and %s is a model of %s: change judge.provider or the model", said, model, told)
	default:
		// Servers that speak OpenAI's protocol offer models of every maker.
		return said, nil
	}
}

// unknownProvider says what to write for a model whose name tells no provider.
func unknownProvider(model v1alpha1.ModelName) error {
	return fmt.Errorf("model %s: its name does not tell its provider: set judge.provider to %s "+
		"(openai, with OPENAI_BASE_URL, for any server that speaks OpenAI's protocol)", model, alternatives(Providers()))
}

// alternatives lists names as in "a, b or c".
func alternatives[T ~string](names []T) string {
	var b strings.Builder
	for i, name := range names {
		switch i {
		case 0:
		case len(names) - 1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}
