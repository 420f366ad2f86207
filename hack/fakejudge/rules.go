package fakejudge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Rules say what the stand-in answers. They are read from YAML (or JSON, which is
// YAML) by ParseRules, or written as Go values.
type Rules struct {
	// Rules are tried in order; the first match wins.
	Rules []Rule `yaml:"rules"`
	// Default answers what no rule matches.
	Default Default `yaml:"default"`
	// Latency delays every answer; a rule's own latency takes its place.
	Latency Latency `yaml:"latency"`
	// Models says which models are unknown, or refuse a parameter.
	Models []Model `yaml:"models"`
}

// Rule answers the calls that it matches.
type Rule struct {
	// When says which calls match; empty matches every call.
	When When `yaml:"when"`
	// Score is what the judge would say. Unset: the default's score.
	Score Score `yaml:"score"`
	// Reason and Evidence are the verdict's texts; unset: the default's.
	// Evidence "auto" is a span of the candidate.
	Reason   string `yaml:"reason"`
	Evidence string `yaml:"evidence"`
	// Fault is given instead of a verdict.
	Fault Fault `yaml:"fault"`
	// Times limits the fault to the first matching calls; 0: every call.
	Times int `yaml:"times"`
	// Status (400..599) and RetryAfter belong to the fault "status".
	Status     int      `yaml:"status"`
	RetryAfter Duration `yaml:"retryAfter"`
	// Latency takes the place of the common latency.
	Latency *Latency `yaml:"latency"`

	pattern *regexp.Regexp
}

// When is a condition; all parts that are set must hold. Comparisons are case-sensitive.
type When struct {
	// Contains is text in the question, Regex an RE2 expression on it; at most one of them.
	Contains string `yaml:"contains"`
	Regex    string `yaml:"regex"`
	// Candidate is text in the candidate (or, where no candidate block is found, in
	// everything that is not the question).
	Candidate string `yaml:"candidate"`
	// Model is the exact name of the model.
	Model string `yaml:"model"`
}

// Default is the answer where no rule matches, and what a rule leaves unset.
type Default struct {
	// Score: unset means by hash.
	Score    Score  `yaml:"score"`
	Reason   string `yaml:"reason"`
	Evidence string `yaml:"evidence"` // unset means "auto"
}

// Model is a policy for models by name.
type Model struct {
	// Name is a name or a pattern with * and ?, as in path.Match.
	Name string `yaml:"name"`
	// Unknown models end in 404, as a misspelt name does.
	Unknown bool `yaml:"unknown"`
	// RefusesTemperature makes a call that sets a temperature end in 400 (S-47).
	RefusesTemperature bool `yaml:"refusesTemperature"`
}

// Score is a fixed score in 0..1 (At), or one by hash (ByHash). The zero value is unset.
type Score struct {
	value float64
	kind  scoreKind
}

type scoreKind int

const (
	scoreUnset scoreKind = iota
	scoreFixed
	scoreHash
)

// At is a fixed score; ParseRules and SetRules refuse one outside 0..1.
func At(v float64) Score { return Score{v, scoreFixed} }

// ByHash is a score in [0,1] that depends on model, question and candidate alone.
func ByHash() Score { return Score{0, scoreHash} }

// UnmarshalYAML reads a number in 0..1 or the word hash.
func (s *Score) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == "hash" {
		*s = ByHash()
		return nil
	}
	v, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || n.Kind != yaml.ScalarNode || !(v >= 0 && v <= 1) {
		return fmt.Errorf("line %d: score is %q; write a number from 0 to 1, or hash", n.Line, n.Value)
	}
	*s = At(v)
	return nil
}

// Duration is a time.Duration, written as in Go: 200ms, 1.5s.
type Duration time.Duration

// UnmarshalYAML reads a duration of 0 or more.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || v < 0 {
		return fmt.Errorf("line %d: %q is not a duration; write it like 200ms or 1.5s", n.Line, n.Value)
	}
	*d = Duration(v)
	return nil
}

// Latency is how long an answer takes: between Min and Max, by hash of the call, so
// that the same call always takes as long.
type Latency struct{ Min, Max Duration }

// Fixed is a latency that is the same for every call.
func Fixed(d time.Duration) Latency { return Latency{Duration(d), Duration(d)} }

// UnmarshalYAML reads a duration, or {min, max}.
func (l *Latency) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		var d Duration
		if err := d.UnmarshalYAML(n); err != nil {
			return err
		}
		*l = Latency{d, d}
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: latency is a duration (200ms) or {min: 100ms, max: 300ms}", n.Line)
	}
	var out Latency
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		into := map[string]*Duration{"min": &out.Min, "max": &out.Max}[key.Value]
		if into == nil {
			return fmt.Errorf("line %d: unknown field %q in latency; known are min and max", key.Line, key.Value)
		}
		if err := into.UnmarshalYAML(val); err != nil {
			return err
		}
	}
	if out.Max < out.Min {
		return fmt.Errorf("line %d: latency.max is less than latency.min", n.Line)
	}
	*l = out
	return nil
}

func (l Latency) of(d digest) time.Duration {
	return time.Duration(l.Min) + time.Duration(d.unit()*float64(l.Max-l.Min))
}

// ParseRules reads a rules file strictly. Its errors name the line, what is wrong
// there and what to write instead. An empty file is valid: everything by hash.
func ParseRules(data []byte) (Rules, error) {
	var r Rules
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&r); errors.Is(err, io.EOF) {
		return Rules{}, nil
	} else if err != nil {
		return Rules{}, yamlError(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Rules{}, errors.New("rules: more than one YAML document; write a single one")
	}
	lines := ruleLines(data)
	if _, err := compileAt(r, func(i int) string {
		if i < len(lines) {
			return fmt.Sprintf("line %d: ", lines[i])
		}
		return ""
	}); err != nil {
		return Rules{}, err
	}
	return r, nil
}

var unknownField = regexp.MustCompile(`field (\S+) not found in type fakejudge\.(\w+)`)

// fieldsOf names what can be written where a type stands.
var fieldsOf = map[string]string{
	"Rules":   "rules, default, latency, models",
	"Rule":    "when, score, reason, evidence, fault, times, status, retryAfter, latency",
	"When":    "contains, regex, candidate, model",
	"Default": "score, reason, evidence",
	"Model":   "name, unknown, refusesTemperature",
}

// yamlError puts the library's words into ours.
func yamlError(err error) error {
	msg := unknownField.ReplaceAllStringFunc(err.Error(), func(m string) string {
		g := unknownField.FindStringSubmatch(m)
		return fmt.Sprintf("unknown field %q; known here are %s", g[1], fieldsOf[g[2]])
	})
	msg = strings.TrimPrefix(msg, "yaml: ")
	msg = strings.TrimPrefix(msg, "unmarshal errors:\n")
	return fmt.Errorf("rules: %s", strings.TrimSpace(strings.ReplaceAll(msg, "\n  ", "; ")))
}

// ruleLines returns the line on which each rule starts.
func ruleLines(data []byte) []int {
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	top := doc.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if top[i].Value == "rules" {
			var lines []int
			for _, n := range top[i+1].Content {
				lines = append(lines, n.Line)
			}
			return lines
		}
	}
	return nil
}

func compile(r Rules) (*ruleSet, error) {
	return compileAt(r, func(int) string { return "" })
}

// compileAt checks what holds between fields, and compiles the expressions.
func compileAt(r Rules, at func(rule int) string) (*ruleSet, error) {
	set := &ruleSet{Rules: r}
	set.Rules.Rules = slices.Clone(r.Rules)
	for i := range set.Rules.Rules {
		if err := set.Rules.Rules[i].compile(); err != nil {
			return nil, fmt.Errorf("rules: %srules[%d]: %w", at(i), i, err)
		}
	}
	if err := r.Default.Score.check(); err != nil {
		return nil, fmt.Errorf("rules: default: %w", err)
	}
	for i, m := range r.Models {
		if _, err := path.Match(m.Name, ""); err != nil || m.Name == "" {
			return nil, fmt.Errorf("rules: models[%d]: name is %q; write a model's name or a pattern such as claude-opus-*", i, m.Name)
		}
	}
	set.used = make([]int, len(r.Rules))
	return set, nil
}

func (s Score) check() error {
	if s.kind == scoreFixed && !(s.value >= 0 && s.value <= 1) {
		return fmt.Errorf("score is %v; write a number from 0 to 1, or hash", s.value)
	}
	return nil
}

func (r *Rule) compile() error {
	if err := r.Score.check(); err != nil {
		return err
	}
	if r.When.Contains != "" && r.When.Regex != "" {
		return errors.New("when has both contains and regex; write one of them")
	}
	if r.When.Regex != "" {
		re, err := regexp.Compile(r.When.Regex)
		if err != nil {
			return fmt.Errorf("when.regex is not an RE2 expression: %w", err)
		}
		r.pattern = re
	}
	if r.Fault != "" && !slices.Contains(faults, r.Fault) {
		return fmt.Errorf("unknown fault %q; write one of %s", r.Fault, faultNames())
	}
	switch {
	case r.Times < 0:
		return errors.New("times is negative; write how many calls get the fault, or leave it out for all")
	case r.Times > 0 && r.Fault == "":
		return errors.New("times without fault; it says how many calls get the fault")
	case r.Fault == FaultStatus && (r.Status < 400 || r.Status > 599):
		return errors.New("fault: status needs a status from 400 to 599")
	case r.Fault != FaultStatus && (r.Status != 0 || r.RetryAfter != 0):
		return errors.New("status and retryAfter belong to fault: status")
	}
	return nil
}
