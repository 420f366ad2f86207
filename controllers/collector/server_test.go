package collector

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
)

// sharing is a cache that hands out its own object, as caches do that are asked not to copy.
type sharing struct {
	*cache
	run *v1alpha1.EvalRun
}

func (s *sharing) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if run, ok := obj.(*v1alpha1.EvalRun); ok && key.Name == s.run.Name {
		*run = *s.run
		return nil
	}
	return s.cache.Get(ctx, key, obj, opts...)
}

func TestBadRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path, body string
		want               int
		says               string
	}{
		"no JSON":                  {http.MethodPost, "/v1/judgments", "hello", 400, "cannot be read"},
		"nothing":                  {http.MethodPost, "/v1/judgments", "", 400, "cannot be read"},
		"two documents":            {http.MethodPost, "/v1/judgments", "{}{}", 400, "more after"},
		"another type":             {http.MethodPost, "/v1/leaves/run-0/findings", `{"judgments":"all"}`, 400, "cannot be read"},
		"a body without end":       {http.MethodPost, "/v1/judgments", `{"leaves":[` + strings.Repeat(" ", wire.MaxBody), 413, "longer than"},
		"findings without end":     {http.MethodPost, "/v1/leaves/run-0/findings", strings.Repeat(" ", wire.MaxBody+1), 413, "longer than"},
		"no such path":             {http.MethodGet, "/v1/secrets", "", 404, "nothing here"},
		"a path out of the leaves": {http.MethodGet, "/v1/leaves/..%2f..%2fapi", "", 403, "slice"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRun(t, 1, 1, "clear")
			w.want(w.ask("pod-0", tc.method, tc.path, tc.body), tc.want, tc.says)
			if w.writes != 0 {
				t.Errorf("%d writes", w.writes)
			}
		})
	}
}

func TestABodyOfAStrangerIsNotRead(t *testing.T) {
	w := newRun(t, 1, 1, "clear")
	w.want(w.ask("stranger", http.MethodPost, "/v1/judgments", "hello"), 401, "")
}

func TestNoMoreIsServedThanCanBe(t *testing.T) {
	w := newRun(t, 1, 1, "clear")
	if !w.collector.requests.TryAcquire(maxRequests) {
		t.Fatal("the limit is not free")
	}
	a := w.ask("pod-0", http.MethodGet, "/v1/slice", nil)
	w.want(a, 503, "come again")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.collector.requests.Release(maxRequests)
	if !w.collector.bodies.TryAcquire(maxBodyBytes) {
		t.Fatal("the limit is not free")
	}
	w.want(w.postJudgments("pod-0", "run-0", answered("clear", 1, "ok")), 503, "come again")
	w.collector.bodies.Release(maxBodyBytes)
	w.want(w.postJudgments("pod-0", "run-0", answered("clear", 1, "ok")), 200, "")
	w.want(w.ask("pod-0", http.MethodPost, "/v1/judgments", "no JSON"), 400, "")
	// Everything was given back.
	if !w.collector.requests.TryAcquire(maxRequests) || !w.collector.bodies.TryAcquire(maxBodyBytes) {
		t.Error("what requests took was not given back")
	}
}

func TestAPanicIsAnAnswer(t *testing.T) {
	w := newRun(t, 1, 1, "clear")
	w.beforeWrite = func(int) error { panic("a bug") }
	w.want(w.postJudgments("pod-0", "run-0", answered("clear", 1, "ok")), 500, "the collector failed")
	w.beforeWrite = nil
	w.want(w.postJudgments("pod-0", "run-0", answered("clear", 1, "ok")), 200, "")
	if got := metricOf(t, w, "mcptest_collector_requests_total", "code", "500"); got != 1 {
		t.Errorf("%v answers of 500 were counted", got)
	}
}

func TestRequestsUnderWayEndBeforeTheServerDoes(t *testing.T) {
	w := newRun(t, 1, 1, "clear")
	w.now = time.Now()
	cert := ensure(t, fake.NewClientBuilder().WithScheme(newScheme()).Build(), hosts, w.now)
	log := logr.Discard()
	w.collector = New(Options{Client: w.cached, Reader: w.live, BindAddress: "127.0.0.1:0", Certificate: cert, Log: &log})
	ctx, cancel := context.WithCancel(t.Context())
	if w.collector.ReadyCheck(nil) == nil {
		t.Error("it is ready before it serves")
	}
	ended := make(chan error, 1)
	go func() { ended <- w.collector.Start(ctx) }()
	address, err := w.collector.Address(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := wire.NewClient(wire.ClientOptions{URL: "https://" + address, CA: cert.CAPEM, TokenFile: tokenFile(t, "pod-0")})
	if err != nil {
		t.Fatal(err)
	}
	writing, write := make(chan struct{}), make(chan struct{})
	w.beforeWrite = func(int) error { close(writing); <-write; return nil }
	posted := make(chan error, 1)
	go func() {
		_, err := c.PostFindings(t.Context(), "run-0", findingsOf(answered("clear", 1, "ok")))
		posted <- err
	}()
	<-writing
	cancel() // the manager is told to stop
	select {
	case err := <-ended:
		t.Fatalf("it ended before its request: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(write)
	if err := <-posted; err != nil {
		t.Errorf("the request under way: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if w.run("run-0").Status.Report == nil {
		t.Error("the report is lost")
	}
}

func TestNothingIsServedWithoutACertificate(t *testing.T) {
	if err := New(Options{BindAddress: "127.0.0.1:0"}).Start(t.Context()); err == nil || !strings.Contains(err.Error(), "EnsureCertificate") {
		t.Errorf("err = %v", err)
	}
}

func BenchmarkPostFindings(b *testing.B) {
	w := newRun(b, 100, 1, "clear", "short", "true", "kind", "whole")
	f := findingsOf(answered("clear", 1, "ok"), answered("short", 1, "ok"), answered("true", 1, "ok"), answered("kind", 1, "ok"), answered("whole", 1, "ok"))
	w.want(w.ask("pod-0", http.MethodGet, "/v1/slice", nil), 200, "")
	b.ReportAllocs()
	for b.Loop() {
		if a := w.postFindings("pod-0", "run-42", f); a.code != http.StatusOK {
			b.Fatal(a.code, a.problem)
		}
		b.StopTimer()
		w.updateStatus("run-42", func(s *v1alpha1.EvalRunStatus) { *s = v1alpha1.EvalRunStatus{} })
		b.StartTimer()
	}
}

func BenchmarkPostJudgments(b *testing.B) {
	w := newRun(b, 100, 1, "clear", "short")
	w.want(w.ask("pod-0", http.MethodGet, "/v1/slice", nil), 200, "")
	b.ReportAllocs()
	for b.Loop() {
		if a := w.postJudgments("pod-0", "run-42", answered("clear", 1, "ok")); a.code != http.StatusOK {
			b.Fatal(a.code, a.problem)
		}
		b.StopTimer()
		w.updateStatus("run-42", func(s *v1alpha1.EvalRunStatus) { s.Judgments = nil })
		b.StartTimer()
	}
}
