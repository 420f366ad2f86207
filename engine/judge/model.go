package judge

import (
	"fmt"
	"strings"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// The model that each provider is asked with when nothing names one (S-24): of late 2026 the ones that neither
// provider has announced the end of, and that judge well for what they cost.
const (
	DefaultAnthropicModel v1alpha1.ModelName = "claude-sonnet-5-5"
	DefaultOpenAIModel    v1alpha1.ModelName = "gpt-5.4-mini"
)

// ModelVariable is the environment variable that names the judge model for evals that name none (S-24).
const ModelVariable = "MCPTEST_JUDGE_MODEL"

// Providers lists the providers of this version, in the order in which a default is looked for (S-24).
func Providers() []v1alpha1.Provider {
	return []v1alpha1.Provider{v1alpha1.ProviderAnthropic, v1alpha1.ProviderOpenAI}
}

// KeyVariable names the environment variable that holds a provider's key.
func KeyVariable(p v1alpha1.Provider) string { return strings.ToUpper(string(p)) + "_API_KEY" }

// BaseURLVariable names the environment variable that holds a provider's base URL.
func BaseURLVariable(p v1alpha1.Provider) string { return strings.ToUpper(string(p)) + "_BASE_URL" }

// DefaultModel returns the model that a provider is asked with when nothing names one; "" for an unknown provider.
func DefaultModel(p v1alpha1.Provider) v1alpha1.ModelName {
	switch p {
	case v1alpha1.ProviderAnthropic:
		return DefaultAnthropicModel
	case v1alpha1.ProviderOpenAI:
		return DefaultOpenAIModel
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

// DeferredError says that nothing can be judged because something is not configured (S-38).
type DeferredError struct {
	// Reason names what is missing, and the variable to set.
	Reason string
}

func (e *DeferredError) Error() string { return e.Reason }

// ProviderOf tells the provider of a model by its name (S-24). It reports false for a name that tells none,
// and for models of providers that this version does not have.
func ProviderOf(model string) (v1alpha1.Provider, bool) {
	switch name := strings.ToLower(model); {
	case strings.HasPrefix(name, "claude-"):
		return v1alpha1.ProviderAnthropic, true
	case strings.HasPrefix(name, "gpt-"), strings.HasPrefix(name, "chatgpt-"):
		return v1alpha1.ProviderOpenAI, true
	case len(name) >= 2 && name[0] == 'o' && '0' <= name[1] && name[1] <= '9':
		return v1alpha1.ProviderOpenAI, true
	default:
		return "", false
	}
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
	return &DeferredError{Reason: fmt.Sprintf("no key for %s, which offers the judge model %s: set %s", p, model, KeyVariable(p))}
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
		keys = append(keys, KeyVariable(p))
	}
	return "", &DeferredError{Reason: fmt.Sprintf("no judge is configured: set %s", strings.Join(keys, " or "))}
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
		return "", fmt.Errorf("judge.provider %q is not known: write anthropic or openai", said)
	case said == v1alpha1.ProviderAnthropic && told == v1alpha1.ProviderOpenAI:
		return "", fmt.Errorf("judge.provider is anthropic, and %s is a model of openai: change judge.provider or the model", model)
	default:
		// Servers that speak OpenAI's protocol offer models of every maker.
		return said, nil
	}
}

// absentProviders are the name prefixes of providers that this version cannot ask.
var absentProviders = []struct{ prefix, provider string }{
	{"gemini-", "Google"},
	{"mistral-", "Mistral"}, {"codestral-", "Mistral"}, {"magistral-", "Mistral"}, {"ministral-", "Mistral"}, {"devstral-", "Mistral"},
}

// unknownProvider says what to write for a model whose name tells no provider that can be asked.
func unknownProvider(model v1alpha1.ModelName) error {
	for _, a := range absentProviders {
		if strings.HasPrefix(strings.ToLower(string(model)), a.prefix) {
			return fmt.Errorf("model %s: this version has no provider for %s: choose a model of anthropic or openai, "+
				"or, for a server that speaks OpenAI's protocol, set judge.provider: openai and OPENAI_BASE_URL", model, a.provider)
		}
	}
	return fmt.Errorf("model %s: its name does not tell its provider: set judge.provider to anthropic or openai "+
		"(openai, with OPENAI_BASE_URL, for any server that speaks OpenAI's protocol)", model)
}
