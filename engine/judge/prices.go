package judge

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

// maxPriceBytes bounds a price file.
const maxPriceBytes = 1 << 20

//go:embed prices.yaml
var defaultPriceFile []byte

// Prices says what calls to models cost. The zero value prices nothing. It is safe for concurrent use.
type Prices struct {
	lists []priceList // the first one that knows a model counts
}

// priceList holds prices by the names of models, or by patterns of them.
type priceList map[string]price

// price is what a million tokens cost, in US dollars.
type price struct {
	rates
	// Above is the number of input tokens past which LongPrompt holds; 0: never.
	Above      int64  `json:"above,omitempty"`
	LongPrompt *rates `json:"longPrompt,omitempty"`
}

// rates are US dollars per million tokens.
type rates struct {
	Input  *float64 `json:"input"`
	Output *float64 `json:"output"`
	// CacheRead and CacheWrite default to Input.
	CacheRead  *float64 `json:"cacheRead,omitempty"`
	CacheWrite *float64 `json:"cacheWrite,omitempty"`
}

// DefaultPrices returns the prices that this version knows; the file prices.yaml says of when they are.
func DefaultPrices() Prices { return defaultPrices() }

var defaultPrices = sync.OnceValue(func() Prices {
	p, err := LoadPrices(bytes.NewReader(defaultPriceFile))
	if err != nil {
		// The file is part of the binary, and a test loads it.
		return Prices{}
	}
	return p
})

// LoadPrices reads a price file in the form of this package's prices.yaml, at most 1 MiB. Unknown keys,
// negative prices and a file without models are errors.
func LoadPrices(r io.Reader) (Prices, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPriceBytes+1))
	if err != nil {
		return Prices{}, fmt.Errorf("read prices: %w", err)
	}
	if len(data) > maxPriceBytes {
		return Prices{}, errors.New("read prices: the file is longer than 1 MiB")
	}
	var file struct {
		Updated string    `json:"updated"`
		Sources []string  `json:"sources"`
		Models  priceList `json:"models"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return Prices{}, fmt.Errorf("read prices: %w", err)
	}
	if len(file.Models) == 0 {
		return Prices{}, errors.New("read prices: no models: write, for example, models: {my-model: {input: 1, output: 5}}")
	}
	if err := file.Models.check(); err != nil {
		return Prices{}, fmt.Errorf("read prices: %w", err)
	}
	return Prices{lists: []priceList{file.Models}}, nil
}

// check refuses names that match no model, and prices that cannot be meant.
func (l priceList) check() error {
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			return fmt.Errorf("model %s: a * stands for the rest of a name, and at its end only", name)
		}
		if err := l[name].check(); err != nil {
			return fmt.Errorf("model %s: %w", name, err)
		}
	}
	return nil
}

// check refuses prices that cannot be meant.
func (p price) check() error {
	if err := p.rates.check(); err != nil {
		return err
	}
	if (p.Above > 0) != (p.LongPrompt != nil) {
		return errors.New("above (a number of input tokens) and longPrompt (its prices) belong together")
	}
	if p.LongPrompt == nil {
		return nil
	}
	return p.LongPrompt.check()
}

func (r rates) check() error {
	if r.Input == nil || r.Output == nil {
		return errors.New("input and output are needed, as in {input: 1, output: 5}; 0 is a price too")
	}
	for _, usd := range []*float64{r.Input, r.Output, r.CacheRead, r.CacheWrite} {
		if usd != nil && (*usd < 0 || math.IsInf(*usd, 0) || math.IsNaN(*usd)) {
			return fmt.Errorf("%v is no price: write US dollars per million tokens, 0 or more", *usd)
		}
	}
	return nil
}

// MarshalJSON writes the price lists, the one that counts first.
func (p Prices) MarshalJSON() ([]byte, error) { return json.Marshal(p.lists) }

// UnmarshalJSON reads what MarshalJSON wrote, and checks it as LoadPrices does.
func (p *Prices) UnmarshalJSON(data []byte) error {
	var lists []priceList
	if err := json.Unmarshal(data, &lists); err != nil {
		return err
	}
	for _, list := range lists {
		if err := list.check(); err != nil {
			return err
		}
	}
	p.lists = lists
	return nil
}

// Empty tells whether no model has a price.
func (p Prices) Empty() bool { return len(p.lists) == 0 }

// With returns p with the prices of q before it: what q has a price for, also by a pattern, counts.
func (p Prices) With(q Prices) Prices { return Prices{lists: slices.Concat(q.lists, p.lists)} }

// Cost returns what a call costs, in US dollars, and whether the model has a price; without one it is 0.
func (p Prices) Cost(model string, t Tokens) (usd float64, ok bool) {
	m, ok := p.find(model)
	if !ok {
		return 0, false
	}
	r := m.rates
	if m.LongPrompt != nil && t.Input > m.Above {
		r = *m.LongPrompt
	}
	fresh := max(0, t.Input-t.CacheRead-t.CacheWrite)
	total := float64(fresh)**r.Input + float64(t.Output)**r.Output +
		float64(t.CacheRead)*orElse(r.CacheRead, *r.Input) + float64(t.CacheWrite)*orElse(r.CacheWrite, *r.Input)
	return total / 1e6, true
}

// Estimate returns what a call with so many input and output tokens would cost without a prompt cache, in US dollars,
// and whether the model has a price.
func (p Prices) Estimate(model string, input, output int) (usd float64, ok bool) {
	return p.Cost(model, Tokens{Input: int64(input), Output: int64(output)})
}

// find returns the price of a model in the first list that has one.
func (p Prices) find(model string) (price, bool) {
	for _, list := range p.lists {
		if m, ok := list.find(model); ok {
			return m, true
		}
	}
	return price{}, false
}

// find returns the price under the longest key that matches a model.
func (l priceList) find(model string) (price, bool) {
	var best price
	longest := -1
	for key, m := range l {
		prefix, any := strings.CutSuffix(key, "*")
		rest, ok := strings.CutPrefix(model, prefix)
		if ok && len(prefix) > longest && (any || rest == "" || isRelease(rest)) {
			best, longest = m, len(prefix)
		}
	}
	return best, longest >= 0
}

// isRelease reports whether what follows a model's name says which release of it: a date, "latest", or a tag.
func isRelease(rest string) bool {
	switch rest[0] {
	case ':', '@':
		return true
	case '-':
		rest = rest[1:]
	default:
		return false
	}
	return rest == "latest" || len(rest) >= len("20060102") && strings.Trim(rest, "0123456789-") == ""
}

func orElse(v *float64, other float64) float64 {
	if v == nil {
		return other
	}
	return *v
}
