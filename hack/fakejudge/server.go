// Package fakejudge is a stand-in judge: a server that speaks the wire formats of
// Anthropic Messages, OpenAI Chat Completions (also as Mistral has them) and the
// Gemini API, refuses what the real ones refuse, and answers verdicts from a rules
// file or from a stable hash.
//
// No model is asked and nothing is judged. It exists so that demos and tests run
// without a key and without money, and so that tests can make a judge slow,
// broken or rude on purpose and count what it was asked. It says that it is a
// stand-in wherever it shows: in a response header, in every reason, in its help.
package fakejudge

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Header is set on every response, so that nobody takes the stand-in for a model.
	Header = "X-Mcptest-Stand-In"
	// Name is the value of Header.
	Name = "fakejudge"
	// ReasonPrefix starts every reason that the stand-in writes.
	ReasonPrefix = "[stand-in judge]"
	// MaxBodyBytes is the largest request body that is read; a larger one is refused with 413.
	MaxBodyBytes = 32 << 20

	readTimeout  = 60 * time.Second
	writeTimeout = 30 * time.Second
)

// Options configure a Server. The zero value answers every well-formed call by
// hash, at once, whatever its key.
type Options struct {
	// Rules say what is answered. Rules that do not hold together (ParseRules says
	// why) make every call end with status 500 and that message.
	Rules Rules
	// Keys are the API keys that are accepted. Empty: any key that is not blank.
	Keys []string
	// MaxDistinct bounds each of the sets behind the counters of distinct bodies
	// and of answered questions. 0 means 1,000,000 (about 60 MB each when full).
	MaxDistinct int
}

// Server is the stand-in judge. It is an http.Handler and safe for concurrent use.
type Server struct {
	keys     map[string]bool
	rules    atomic.Pointer[ruleSet]
	rulesErr error

	stats *recorder
	gate  *gate
	cache *prefixCache
	ids   atomic.Int64

	closed    chan struct{}
	closeOnce sync.Once
}

// New returns a Server. Close it before closing the HTTP server around it, so that
// calls which are held or hang on purpose end.
func New(o Options) *Server {
	if o.MaxDistinct <= 0 {
		o.MaxDistinct = defaultMaxDistinct
	}
	s := &Server{
		keys:   make(map[string]bool, len(o.Keys)),
		stats:  newRecorder(o.MaxDistinct),
		gate:   newGate(),
		cache:  newPrefixCache(maxCachedPrefixes),
		closed: make(chan struct{}),
	}
	for _, k := range o.Keys {
		s.keys[k] = true
	}
	s.rulesErr = s.SetRules(o.Rules)
	if s.rulesErr != nil {
		s.rules.Store(&ruleSet{})
	}
	return s
}

// SetRules replaces the rules for the calls that are decided from now on; the
// `times` of the new rules start at zero. It returns an error, and changes
// nothing, when the rules do not hold together.
func (s *Server) SetRules(r Rules) error {
	set, err := compile(r)
	if err != nil {
		return err
	}
	s.rules.Store(set)
	return nil
}

// Stats returns the counters. A call whose response has reached its client is
// always in them: Stats waits (at most a second) for calls that are just being counted.
func (s *Server) Stats() Stats {
	st := s.stats.snapshot()
	st.Held = s.gate.held()
	return st
}

// Reset sets all counters, the `times` of the rules and the simulated prompt cache
// back to the start and releases a hold. Calls in flight finish, but count no more.
func (s *Server) Reset() {
	s.gate.release()
	s.rules.Load().resetTimes()
	s.cache.reset()
	s.stats.reset()
}

// Hold answers the next `after` well-formed calls and holds all later ones until
// Release, Reset, Close or until their client goes away. after < 0 counts as 0.
// A Hold replaces an earlier one; what that one holds stays held.
func (s *Server) Hold(after int) { s.gate.hold(after) }

// Release lets the held calls go on and ends the hold.
func (s *Server) Release() { s.gate.release() }

// Close ends the calls that are held, delayed or hang on purpose by dropping their
// connections. Later calls are answered when they need not wait, and dropped when they must.
func (s *Server) Close() { s.closeOnce.Do(func() { close(s.closed) }) }

// ServeHTTP serves all wire formats under any prefix, and the controls under /_fakejudge/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(Header, Name)
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, controlPrefix):
		s.serveControl(w, r)
	case strings.HasSuffix(path, "/v1/messages"):
		s.serveCall(w, r, anthropic{})
	case strings.HasSuffix(path, "/v1/chat/completions"):
		s.serveCall(w, r, openAI{})
	case strings.HasSuffix(path, geminiMethod) && strings.Contains(path, geminiModels):
		s.serveCall(w, r, gemini{model: geminiModel(path)})
	default:
		// Which of them was meant cannot be known; all SDKs read this form. It counts nowhere, written or not.
		_ = writeJSON(w, http.StatusNotFound, anthropic{}.failure(http.StatusNotFound,
			"Not Found: "+clip(path, 200)+" (the stand-in judge serves POST .../v1/messages, POST .../v1/chat/completions, POST ..."+geminiModels+"MODEL"+geminiMethod+" and "+controlPrefix+"stats)"))
	}
}

// NewHTTPServer returns an http.Server around s with the limits that a listener
// needs. It sets no whole-request timeouts, because a held call is meant to wait:
// ServeHTTP bounds the reading of a body and the writing of an answer itself.
func NewHTTPServer(s *Server) *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}

// wait returns true after d, and false when the client went away or the server was closed.
func (s *Server) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-s.closed:
		return false
	}
}
