package collector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"

	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
)

// What bounds a server that anyone in the cluster can reach.
const (
	// maxRequests is how many requests are served at once; the next is told to come again.
	maxRequests = 128
	// maxBodyBytes is how many bytes of bodies are held at once. A body is only read after its sender was authenticated.
	maxBodyBytes = 64 << 20
	// requestTimeout bounds what the collector does for one request, its own requests to the API server included.
	requestTimeout  = 30 * time.Second
	shutdownTimeout = 20 * time.Second
	// retryAfter is when a runner that was sent away should come again.
	retryAfter = time.Second
)

// refusal is why a request is not answered: a status, a reason for the metrics, and words for the runner.
type refusal struct {
	status  int
	reason  string
	message string
}

func (r *refusal) Error() string { return r.message }

func refuse(status int, reason, format string, args ...any) error {
	return &refusal{status: status, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Reasons of refusals, as the metrics tell them.
const (
	reasonToken      = "token"
	reasonPod        = "pod"
	reasonSlice      = "slice"
	reasonLeaf       = "leaf"
	reasonBody       = "body"
	reasonTooBig     = "too_big"
	reasonJudgments  = "judgments"
	reasonClaim      = "claim"
	reasonOtherWins  = "other_report"
	reasonBusy       = "busy"
	reasonNotReady   = "not_ready"
	reasonAPI        = "api"
	reasonConflicts  = "conflicts"
	reasonUnexpected = "unexpected"
)

func (c *Collector) server(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           c.Handler(),
		TLSConfig:         c.tlsConfig(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       60 * time.Second,
		WriteTimeout:      90 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		// Requests under way may end after ctx did; Shutdown bounds them.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:    log.New(logWriter{c.log.V(1)}, "", 0),
	}
}

// logWriter logs what net/http says about connections: handshakes that failed, and the like.
type logWriter struct{ log logr.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Info("connection", "problem", string(p))
	return len(p), nil
}

// Handler serves the five requests of package wire.
func (c *Collector) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(method, path string, h func(*exchange) (any, error)) {
		mux.Handle(method+" "+path, c.serve(path, h))
	}
	handle(http.MethodGet, "/v1/slice", c.getSlice)
	handle(http.MethodGet, "/v1/leaves/{name}", c.getLeaf)
	handle(http.MethodPost, "/v1/judgments", c.postJudgments)
	handle(http.MethodPost, "/v1/leaves/{name}/findings", c.postFindings)
	handle(http.MethodPost, "/v1/budget", c.postBudget)
	mux.Handle("/", c.serve("other", func(*exchange) (any, error) {
		return nil, refuse(http.StatusNotFound, reasonLeaf, "there is nothing here; a runner asks for /v1/slice")
	}))
	return mux
}

// exchange is one request of a pod that was let in, on its way to an answer.
type exchange struct {
	ctx     context.Context
	request *http.Request
	writer  http.ResponseWriter
	log     logr.Logger
	grant   *grant
}

// serve answers with what h returns. h is only called for a pod that grades a slice.
func (c *Collector) serve(path string, h func(*exchange) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		e := &exchange{ctx: ctx, request: r, writer: w, log: c.log.WithValues("path", path)}
		answer, err := c.admit(e, h)
		status := http.StatusOK
		if err != nil {
			status, answer = c.problem(e, err)
		}
		c.metrics.served(path, status, time.Since(began))
		writeJSON(w, status, answer)
	})
}

// admit authenticates the sender, within the limits, and calls h. A panic of h is an error.
func (c *Collector) admit(e *exchange, h func(*exchange) (any, error)) (answer any, err error) {
	if !c.requests.TryAcquire(1) {
		return nil, refuse(http.StatusServiceUnavailable, reasonBusy, "the collector serves %d requests already; come again", maxRequests)
	}
	defer c.requests.Release(1)
	defer func() {
		if p := recover(); p != nil {
			e.log.Error(fmt.Errorf("panic: %v", p), "a request could not be served", "stack", string(debug.Stack()))
			answer, err = nil, refuse(http.StatusInternalServerError, reasonUnexpected, "the collector failed; see its log")
		}
	}()
	e.grant, err = c.authorize(e.ctx, e.request)
	if err != nil {
		return nil, err
	}
	e.log = e.log.WithValues("namespace", e.grant.namespace, "pod", e.grant.pod.name, "run", e.grant.root.name)
	return h(e)
}

// read decodes the body of a request. The memory for it is reserved beforehand; release gives it back.
func (c *Collector) read(e *exchange, into any) (release func(), err error) {
	weight := e.request.ContentLength
	if weight > wire.MaxBody {
		return nil, tooBig()
	}
	if weight < 0 {
		weight = wire.MaxBody
	}
	if !c.bodies.TryAcquire(weight) {
		return nil, refuse(http.StatusServiceUnavailable, reasonBusy, "the collector reads as much as it can hold; come again")
	}
	release = func() { c.bodies.Release(weight) }
	decoder := json.NewDecoder(http.MaxBytesReader(e.writer, e.request.Body, wire.MaxBody))
	err = decoder.Decode(into)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after the document")
		}
	}
	if err == nil {
		return release, nil
	}
	release()
	var limit *http.MaxBytesError
	if errors.As(err, &limit) {
		return nil, tooBig()
	}
	return nil, refuse(http.StatusBadRequest, reasonBody, "the body cannot be read: %v", err)
}

func tooBig() error {
	return refuse(http.StatusRequestEntityTooLarge, reasonTooBig, "the body is longer than %d bytes", wire.MaxBody)
}

// problem makes an answer of an error, and logs what somebody should know of.
func (c *Collector) problem(e *exchange, err error) (int, wire.Problem) {
	var refused *refusal
	if !errors.As(err, &refused) {
		// What the API server, or the way to it, did not do now it may do later.
		e.log.Error(err, "a request could not be served")
		refused = &refusal{status: http.StatusServiceUnavailable, reason: reasonAPI, message: "the collector could not reach the API server, or was refused by it; come again"}
	}
	c.metrics.refused(refused.reason)
	switch refused.status {
	case http.StatusUnauthorized, http.StatusNotFound:
		e.log.V(1).Info("refused", "status", refused.status, "reason", refused.reason, "message", refused.message)
	default:
		e.log.Info("refused", "status", refused.status, "reason", refused.reason, "message", refused.message)
	}
	if refused.status == http.StatusServiceUnavailable {
		e.writer.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	return refused.status, wire.Problem{Message: refused.message}
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	data, err := json.Marshal(answer)
	if err != nil { // only types of package wire are answered, which always marshal
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // a runner that went away asks again
}
