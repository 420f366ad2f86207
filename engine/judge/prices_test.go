package judge

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultPricesLoadAndKnowTheDefaultModels(t *testing.T) {
	p, err := LoadPrices(strings.NewReader(string(defaultPriceFile)))
	if err != nil {
		t.Fatal(err)
	}
	for _, provider := range Providers() {
		m := string(DefaultModel(provider))
		if told, ok := ProviderOf(m); !ok || told != provider {
			t.Errorf("the default model of %s, %s, is one of %q by its name", provider, m, told)
		}
		if _, ok := p.Cost(m, Tokens{}); !ok {
			t.Errorf("%s has no price", m)
		}
		if _, ok := DefaultPrices().Cost(m, Tokens{}); !ok {
			t.Errorf("%s has no price in DefaultPrices", m)
		}
	}
}

func TestDefaultPricesOfTheFamilies(t *testing.T) {
	const million = 1_000_000
	tests := map[string]struct {
		model  string
		tokens Tokens
		usd    float64
		ok     bool
	}{
		"a long prompt of a Pro model costs more": {"gemini-3.1-pro-preview", Tokens{Input: million, CacheRead: million / 2, Output: million / 10}, 2 + 0.20 + 1.80, true},
		"a short one does not":                    {"gemini-3.1-pro-preview-11-2026", Tokens{Input: 200_000, Output: 1000}, 0.40 + 0.012, true},
		"Flash has one price":                     {"gemini-3.8-flash", Tokens{Input: million, Output: 1000}, 1.50 + 0.0075, true},
		"Flash-Lite is no Flash":                  {"gemini-3.5-flash-lite", Tokens{Input: million}, 0.30, true},
		"an image model is no Flash":              {"gemini-3.1-flash-image", Tokens{Input: million}, 0, false},
		"cached input of Mistral's":               {"mistral-medium-latest", Tokens{Input: million, CacheRead: million}, 0.15, true},
		"a model of Mistral's by its date":        {"ministral-8b-2512", Tokens{Input: million, Output: million}, 0.30, true},
		"an alias that moves has no price":        {"mistral-large-latest", Tokens{Input: million}, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			usd, ok := DefaultPrices().Cost(tt.model, tt.tokens)
			if ok != tt.ok || math.Abs(usd-tt.usd) > 1e-9 {
				t.Errorf("Cost = %v, %v; want %v, %v", usd, ok, tt.usd, tt.ok)
			}
		})
	}
}

func TestCost(t *testing.T) {
	p, err := LoadPrices(strings.NewReader(`
models:
  a: {input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25, above: 1000, longPrompt: {input: 2, output: 20}}
  a-mini: {input: 0.5, output: 1}
  "local/*": {input: 0, output: 0}
`))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		model  string
		tokens Tokens
		usd    float64
		ok     bool
	}{
		"input and output":           {"a", Tokens{Input: 100, Output: 10}, 200e-6, true},
		"cached input":               {"a", Tokens{Input: 300, CacheRead: 100, CacheWrite: 100}, (100 + 10 + 125) * 1e-6, true},
		"cache without a price":      {"a-mini", Tokens{Input: 100, CacheRead: 50, CacheWrite: 50}, 50e-6, true},
		"a date behind the name":     {"a-20260101", Tokens{Input: 100}, 100e-6, true},
		"a date with dashes":         {"a-2026-01-01", Tokens{Input: 100}, 100e-6, true},
		"latest":                     {"a-mini-latest", Tokens{Input: 100}, 50e-6, true},
		"a tag":                      {"a:eu", Tokens{Input: 100}, 100e-6, true},
		"the longest name counts":    {"a-mini", Tokens{Input: 100}, 50e-6, true},
		"another model is unpriced":  {"a-nano", Tokens{Input: 100}, 0, false},
		"a name that goes on":        {"ab", Tokens{Input: 100}, 0, false},
		"a prefix":                   {"local/llama3", Tokens{Input: 100}, 0, true},
		"a long prompt":              {"a", Tokens{Input: 1001, Output: 1}, (2002 + 20) * 1e-6, true},
		"more cached than there was": {"a", Tokens{Input: 10, CacheRead: 20}, 2e-6, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			usd, ok := p.Cost(tt.model, tt.tokens)
			if ok != tt.ok || math.Abs(usd-tt.usd) > 1e-12 {
				t.Errorf("Cost = %v, %v; want %v, %v", usd, ok, tt.usd, tt.ok)
			}
		})
	}
	if usd, ok := p.Estimate("a", 100, 10); !ok || math.Abs(usd-200e-6) > 1e-12 {
		t.Errorf("Estimate = %v, %v", usd, ok)
	}
	more, err := LoadPrices(strings.NewReader("models: {a: {input: 3, output: 0}}"))
	if err != nil {
		t.Fatal(err)
	}
	if usd, _ := p.With(more).Cost("a", Tokens{Input: 100}); math.Abs(usd-300e-6) > 1e-12 {
		t.Errorf("With: the added price does not count: %v", usd)
	}
}

func TestLoadPricesRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ in, err string }{
		"a negative price":         {"models: {a: {input: -1, output: 0}}", "no price"},
		"an unknown key":           {"models: {a: {inptu: 1}}", "inptu"},
		"no price for the answer":  {"models: {a: {input: 1}}", "input and output are needed"},
		"no price for the prompt":  {"models: {a: {output: 1}}", "input and output are needed"},
		"a * in the middle":        {"models: {a*b: {input: 1, output: 1}}", "at its end only"},
		"no models":                {"updated: x", "no models"},
		"above without longPrompt": {"models: {a: {input: 1, output: 1, above: 5}}", "belong together"},
		"a long file":              {strings.Repeat("# x\n", 1<<19), "1 MiB"},
		"no YAML":                  {"{", "read prices"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := LoadPrices(strings.NewReader(tt.in)); err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error = %v, want %q", err, tt.err)
			}
		})
	}
}

func TestPricesGoThroughJSON(t *testing.T) {
	want, err := LoadPrices(strings.NewReader("models: {m: {input: 1, output: 5, cacheRead: 0.1, above: 1000, longPrompt: {input: 2, output: 10}}}"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Prices
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Prices{}, price{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := json.Unmarshal([]byte(`[{"m":{"input":-1,"output":1}}]`), &got); err == nil {
		t.Error("a negative price was read")
	}
	var none Prices
	if data, err := json.Marshal(none); err != nil || string(data) != "null" || json.Unmarshal(data, &got) != nil || !got.Empty() {
		t.Errorf("no prices became %s, %v", data, err)
	}
}

func TestOwnPricesCountBeforeKnownOnes(t *testing.T) {
	for name, own := range map[string]string{
		"by name":              "models: {claude-sonnet-5-5: {input: 100, output: 500}}",
		"by a pattern":         "models: {claude-*: {input: 100, output: 500}}",
		"by one for all names": `models: {"*": {input: 100, output: 500}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := LoadPrices(strings.NewReader(own))
			if err != nil {
				t.Fatal(err)
			}
			if usd, ok := DefaultPrices().With(p).Cost("claude-sonnet-5-5", Tokens{Input: 1e6}); !ok || usd != 100 {
				t.Errorf("a million tokens cost %v", usd)
			}
			if usd, _ := DefaultPrices().With(p).Cost("gpt-4o", Tokens{Input: 1e6}); name != "by one for all names" && usd != 2.5 {
				t.Errorf("another model costs %v", usd)
			}
		})
	}
}
