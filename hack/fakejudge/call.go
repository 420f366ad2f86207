package fakejudge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// wire is one provider's format: what it refuses, and how it words an answer.
type wire interface {
	// checkHeaders refuses a call by its headers alone; keys empty accepts any key.
	checkHeaders(h http.Header, keys map[string]bool) *refusal
	// decode reads a body as strictly as the real service does.
	decode(body []byte, rules *ruleSet) (*request, *refusal)
	// answer words an outcome; the result is encoded as the response body.
	answer(s *Server, req *request, out outcome) any
	// failure is the error body that belongs to an HTTP status.
	failure(status int, message string) any
	// requestIDHeader names the response header that carries the request's id; "" when the provider has none.
	requestIDHeader() string
}

// delayer is a wire that says in the body of an error how long to wait, and not in a header.
type delayer interface {
	failureAfter(status int, message string, wait time.Duration) any
}

// refusal is a request that the real service would not have answered.
type refusal struct {
	status int
	body   any
}

// request is what all formats have in common once they are decoded.
type request struct {
	model     string
	prompt    prompt
	schema    *schema // nil: an answer in prose is expected
	tool      string  // the Anthropic tool that is called; "" for a text answer
	maxTokens int     // 0: no limit was given
	segments  []segment
	inputLen  int  // bytes of all text, for the usage estimate
	form      wire // how it is answered, where that is another provider's form than the path's; else nil
}

// serveCall is the life of one call. It ends in exactly one of: refused, answered,
// faulted, aborted.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, f wire) {
	c := s.stats.begin()
	defer c.end()

	if name := f.requestIDHeader(); name != "" {
		w.Header().Set(name, fmt.Sprintf("req_fakejudge%012d", s.ids.Add(1)))
	}

	body, ref, err := s.readCall(w, r, f)
	if err != nil {
		c.abort()
		return
	}
	var req *request
	rules := s.rules.Load()
	if ref == nil {
		c.sawBody(body)
		req, ref = f.decode(body, rules)
	}
	if ref != nil {
		s.respond(w, r, c, ref.status, ref.body, c.refuse)
		return
	}
	c.sawModel(req.model)
	if req.form != nil {
		f = req.form
	}

	if !s.gate.pass(r.Context(), s.closed) {
		c.abort()
		s.dropUnlessGone(r)
		return
	}
	d := s.rules.Load().decide(req)
	if !s.wait(r.Context(), d.latency) {
		c.abort()
		s.dropUnlessGone(r)
		return
	}
	s.finish(w, r, f, c, req, d)
}

// readCall checks what comes before the body and reads the body. An error means
// that the client went away.
func (s *Server) readCall(w http.ResponseWriter, r *http.Request, f wire) ([]byte, *refusal, error) {
	refuse := func(status int, msg string) *refusal { return &refusal{status, f.failure(status, msg)} }
	if s.rulesErr != nil {
		return nil, refuse(http.StatusInternalServerError, ReasonPrefix+" its rules are invalid: "+s.rulesErr.Error()), nil //nolint:nilerr // the refusal tells it
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, refuse(http.StatusMethodNotAllowed, "Method Not Allowed"), nil
	}
	if ref := f.checkHeaders(r.Header, s.keys); ref != nil {
		return nil, ref, nil
	}
	if mt, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mt != "application/json" {
		return nil, refuse(http.StatusBadRequest, "Content-Type: must be application/json"), nil //nolint:nilerr // the refusal tells it
	}
	body, err := readBody(w, r, MaxBodyBytes)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refuse(http.StatusRequestEntityTooLarge, "Request exceeds the maximum size"), nil
	case err != nil:
		return nil, nil, err
	}
	return body, nil, nil
}

// readBody reads a body under a deadline and a size limit. The deadline is lifted
// afterwards: net/http would otherwise take it for the client going away.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	rc := http.NewResponseController(w)
	// A writer without deadlines (a test's recorder) has no connection to bound.
	_ = rc.SetReadDeadline(time.Now().Add(readTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	_ = rc.SetReadDeadline(time.Time{})
	if err != nil {
		return nil, fmt.Errorf("read the request body: %w", err)
	}
	return body, nil
}

// finish carries a decision out.
func (s *Server) finish(w http.ResponseWriter, r *http.Request, f wire, c *call, req *request, d decision) {
	switch d.fault {
	case FaultHang:
		c.fault(d.fault)
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
		s.dropUnlessGone(r)
	case FaultDrop:
		c.fault(d.fault)
		panic(http.ErrAbortHandler)
	case FaultStatus:
		body := f.failure(d.status, statusMessage(d.status))
		if inBody, ok := f.(delayer); ok {
			body = inBody.failureAfter(d.status, statusMessage(d.status), d.retryAfter)
		} else if d.retryAfter > 0 {
			setRetryAfter(w.Header(), d.retryAfter)
		}
		s.respond(w, r, c, d.status, body, func() { c.fault(d.fault) })
	default:
		out := d.outcome(req)
		body := f.answer(s, req, out)
		s.respond(w, r, c, http.StatusOK, body, func() {
			if out.fault != "" {
				c.fault(out.fault)
				return
			}
			c.answer(req)
		})
	}
}

// respond writes one response and then counts it with count; a client that is gone,
// or goes while the response is written, is counted as aborted instead.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, c *call, status int, body any, count func()) {
	defer c.settle()()
	// Only before the write: a client may well read the answer and hang up at once.
	if r.Context().Err() != nil {
		c.abort()
		return
	}
	if err := writeJSON(w, status, body); err != nil {
		c.abort()
		return
	}
	c.wrote(status)
	count()
}

// dropUnlessGone closes the connection of a call that gets no answer. It panics
// with http.ErrAbortHandler, which is how a handler tells net/http to do so.
func (s *Server) dropUnlessGone(r *http.Request) {
	if r.Context().Err() == nil {
		panic(http.ErrAbortHandler)
	}
}

// writeJSON writes a whole response and returns once it was handed to the connection.
func writeJSON(w http.ResponseWriter, status int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the response: %w", err)
	}
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("write the response: %w", err)
	}
	if err := rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("write the response: %w", err)
	}
	_ = rc.SetWriteDeadline(time.Time{})
	return nil
}
