package fakejudge

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"time"
)

// ruleSet is Rules at work: checked, and with the count of faults given so far.
type ruleSet struct {
	Rules
	mu   sync.Mutex
	used []int // faults given, by rule
}

// decision is what one call gets.
type decision struct {
	fault      Fault
	status     int
	retryAfter time.Duration
	latency    time.Duration
	score      float64
	reason     string
	evidence   string
}

func (s *ruleSet) resetTimes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.used)
}

// decide finds the rule for a request, and takes one of its faults if any is left.
func (s *ruleSet) decide(req *request) decision {
	p := req.prompt
	key := digestOf(req.model, p.last, p.subject())
	i := s.match(req)
	var rule Rule
	d := decision{latency: s.Latency.of(key)}
	source := "no rule matched"
	if i >= 0 {
		rule, source = s.Rules.Rules[i], fmt.Sprintf("rule %d", i+1)
		if rule.Latency != nil {
			d.latency = rule.Latency.of(key)
		}
		if rule.Fault != "" && s.take(i, rule.Times) {
			d.fault, d.status, d.retryAfter = rule.Fault, rule.Status, time.Duration(rule.RetryAfter)
		}
	}
	score := firstOf(rule.Score, s.Default.Score, ByHash())
	d.score = score.value
	how := "fixed score"
	if score.kind == scoreHash {
		d.score, how = key.unit(), "score by hash"
	}
	reason := firstOf(rule.Reason, s.Default.Reason, fmt.Sprintf("%s, %s; no model was asked", source, how))
	d.reason = ReasonPrefix + " " + reason
	if d.evidence = firstOf(rule.Evidence, s.Default.Evidence, "auto"); d.evidence == "auto" {
		d.evidence = p.evidence()
	}
	return d
}

// match returns the index of the first rule that matches the criterion; when none
// does, of the first that matches what stands after the candidate; else -1.
func (s *ruleSet) match(req *request) int {
	questions := []string{req.prompt.last}
	if req.prompt.tail != req.prompt.last {
		questions = append(questions, req.prompt.tail)
	}
	for _, q := range questions {
		for i, r := range s.Rules.Rules {
			if r.matches(req, q) {
				return i
			}
		}
	}
	return -1
}

func (r Rule) matches(req *request, question string) bool {
	w := r.When
	return (w.Model == "" || w.Model == req.model) &&
		strings.Contains(question, w.Contains) &&
		(r.pattern == nil || r.pattern.MatchString(question)) &&
		(w.Candidate == "" || strings.Contains(req.prompt.subject(), w.Candidate))
}

// take uses up one of the rule's faults; times 0 never runs out.
func (s *ruleSet) take(i, times int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if times > 0 && s.used[i] >= times {
		return false
	}
	s.used[i]++
	return true
}

// subject is what the question is about: the candidate, or all that is not the question.
func (p prompt) subject() string {
	return firstOf(p.candidate, p.rest, p.all)
}

// model returns the merged policy for a model.
func (s *ruleSet) model(name string) Model {
	out := Model{Name: name}
	for _, m := range s.Models {
		if ok, _ := path.Match(m.Name, name); ok {
			out.Unknown = out.Unknown || m.Unknown
			out.RefusesTemperature = out.RefusesTemperature || m.RefusesTemperature
		}
	}
	return out
}

// firstOf returns the first value that is set.
func firstOf[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}
