// Package money holds what the verbs share about costs: price files, and amounts as people read them.
package money

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcptest/mcptest-operator/engine/judge"
)

// PriceFile is the path of a price file; empty for the prices that this version knows.
type PriceFile string

// AddFlag adds --prices.
func (f *PriceFile) AddFlag(flags *pflag.FlagSet) {
	flags.StringVar((*string)(f), "prices", "", "A file with prices of models, in US dollars per million tokens, as in models: {my-model: {input: 1, output: 5}}. They count before the known ones.")
}

// Load returns the known prices with those of the file.
func (f PriceFile) Load() (judge.Prices, error) {
	if f == "" {
		return judge.DefaultPrices(), nil
	}
	file, err := os.Open(string(f))
	if err != nil {
		return judge.Prices{}, fmt.Errorf("--prices: %w", err)
	}
	defer file.Close()
	own, err := judge.LoadPrices(file)
	if err != nil {
		return judge.Prices{}, fmt.Errorf("--prices %s: %w", f, err)
	}
	return judge.DefaultPrices().With(own), nil
}

// Dollars is an amount of US dollars.
func Dollars(usd float64) string {
	switch {
	case usd >= 1 || usd == 0:
		return fmt.Sprintf("$%.2f", usd)
	case usd < 0.0001:
		return fmt.Sprintf("$%.2g", usd)
	}
	return fmt.Sprintf("$%.4f", usd)
}

// Limit is the flag --max-cost.
type Limit struct{ usd *float64 }

// AddFlag adds --max-cost.
func (l *Limit) AddFlag(flags *pflag.FlagSet, usage string) { flags.Var(l, "max-cost", usage) }

// USD is the limit in US dollars; nil for none.
func (l *Limit) USD() *float64 { return l.usd }

// String implements pflag.Value.
func (l *Limit) String() string {
	if l == nil || l.usd == nil {
		return ""
	}
	return fmt.Sprint(*l.usd)
}

// Set implements pflag.Value.
func (l *Limit) Set(text string) error {
	usd, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(usd > 0 && usd <= 1e6) {
		return errors.New("write an amount of US dollars above 0 and at most 1000000, such as 0.50")
	}
	l.usd = &usd
	return nil
}

// Type implements pflag.Value.
func (l *Limit) Type() string { return "USD" }
