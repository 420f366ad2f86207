package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/engine/rubric"
	"github.com/mcptest/mcptest-operator/hack/fakejudge"
)

// environment gives the process the environment of a pod, and returns where its termination message will be.
func environment(t *testing.T, with map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	message := filepath.Join(dir, "termination-log")
	for name, text := range map[string]string{message: "", filepath.Join(dir, "token"): "token-of-the-pod"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		wire.EnvURL: "", wire.EnvCA: "", wire.EnvTokenFile: filepath.Join(dir, "token"), wire.EnvTerminationLog: message,
		"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "", "MCPTEST_JUDGE_MODEL": "", envPatience: "",
	} {
		t.Setenv(name, value)
	}
	for name, value := range with {
		t.Setenv(name, value)
	}
	return message
}

func messageOf(t *testing.T, path string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatalf("message %q: %v", data, err)
	}
	return m
}

func TestAWrongStartIsAUsageError(t *testing.T) {
	for name, tc := range map[string]struct {
		with map[string]string
		says string
	}{
		"no URL":           {nil, wire.EnvURL},
		"no authority":     {map[string]string{wire.EnvURL: "https://collector"}, wire.EnvCA},
		"no token":         {map[string]string{wire.EnvURL: "https://collector", wire.EnvCA: "x", wire.EnvTokenFile: ""}, wire.EnvTokenFile},
		"http":             {map[string]string{wire.EnvURL: "http://collector", wire.EnvCA: "x"}, "https"},
		"no certificate":   {map[string]string{wire.EnvURL: "https://collector", wire.EnvCA: "x"}, "PEM"},
		"patience of none": {map[string]string{wire.EnvURL: "https://collector", wire.EnvCA: pemOf(t), envPatience: "soon"}, envPatience},
	} {
		t.Run(name, func(t *testing.T) {
			path := environment(t, tc.with)
			if code := run(t.Context()); code != wire.ExitUsage {
				t.Errorf("exit code %d, want %d", code, wire.ExitUsage)
			}
			if m := messageOf(t, path); !strings.Contains(m["error"].(string), tc.says) {
				t.Errorf("message = %v", m)
			}
		})
	}
}

func pemOf(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// oneRow is a collector with a slice of one row.
type oneRow struct {
	t    *testing.T
	spec v1alpha1.EvalSpec

	mu     sync.Mutex
	report *v1alpha1.Report
}

func (o *oneRow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var answer any = struct{}{}
	switch {
	case r.Header.Get("Authorization") != "Bearer token-of-the-pod":
		w.WriteHeader(http.StatusUnauthorized)
		answer = wire.Problem{Message: "the token is not good"}
	case r.URL.Path == "/v1/slice":
		answer = wire.Slice{Run: "run", Concurrency: 2, Leaves: []wire.SliceLeaf{{Name: "run"}}}
	case r.URL.Path == "/v1/leaves/run":
		answer = wire.Leaf{Name: "run", Row: v1alpha1.Row{Name: "capital", Eval: "capital"}, Spec: o.spec}
	case r.URL.Path == "/v1/leaves/run/findings":
		var f v1alpha1.Findings
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			o.t.Error(err)
		}
		report := rubric.Score(v1alpha1.Row{Name: "capital", Eval: "capital"}, &o.spec, f)
		o.report = &report
		answer = wire.Receipt{Outcome: report.Outcome, Score: report.Score}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func TestASliceIsGradedWithTheEnvironmentOfAPod(t *testing.T) {
	stand := fakejudge.New(fakejudge.Options{Keys: []string{"key-of-the-team"}})
	judge := httptest.NewServer(stand)
	defer judge.Close()
	defer stand.Close()
	desk := &oneRow{t: t, spec: v1alpha1.EvalSpec{
		Response: new("Paris is the capital of France."),
		Judge:    &v1alpha1.JudgeSpec{Model: "claude-test"},
		Rubric: &v1alpha1.RubricSource{RubricSpec: v1alpha1.RubricSpec{Threshold: new(0.0), Criteria: []v1alpha1.Criterion{
			{Name: "clear", Description: "It is clear."}, {Name: "true", Description: "It is true."},
		}}},
	}}
	collector := httptest.NewTLSServer(desk)
	defer collector.Close()
	with := map[string]string{
		wire.EnvURL: collector.URL, wire.EnvCA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: collector.Certificate().Raw})),
		"ANTHROPIC_API_KEY": "key-of-the-team", "ANTHROPIC_BASE_URL": judge.URL,
	}
	path := environment(t, with)
	if code := run(t.Context()); code != wire.ExitDone {
		t.Errorf("exit code %d: %v", code, messageOf(t, path))
	}
	want := map[string]any{"rows": 1.0, "passed": 1.0, "failed": 0.0, "deferred": 0.0, "errored": 0.0}
	if diff := cmp.Diff(want, messageOf(t, path)); diff != "" {
		t.Error(diff)
	}
	if calls := stand.Stats().Calls; calls != 2 {
		t.Errorf("%d calls, want 2", calls)
	}
	if desk.report == nil || desk.report.Usage.Calls != 2 {
		t.Errorf("report = %+v", desk.report)
	}

	// Told to stop before it began.
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if code := run(stopped); code != wire.ExitInterrupted {
		t.Errorf("exit code %d, want %d", code, wire.ExitInterrupted)
	}
	// A pod that the collector does not know.
	with[wire.EnvTokenFile] = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(with[wire.EnvTokenFile], []byte("another-token-that-is-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	path = environment(t, with)
	if code := run(t.Context()); code != wire.ExitConfig {
		t.Errorf("exit code %d, want %d", code, wire.ExitConfig)
	}
	if m := messageOf(t, path); !strings.Contains(m["error"].(string), "does not let this pod in") {
		t.Errorf("message = %v", m)
	}
}

func TestKeysAndTheTokenAreSecrets(t *testing.T) {
	environment(t, map[string]string{"ANTHROPIC_API_KEY": "key-a", "SOME_API_KEY": "key-b", "HARMLESS": "value"})
	got := strings.Join(secrets(), " ")
	for _, secret := range []string{"key-a", "key-b", "token-of-the-pod"} {
		if !strings.Contains(got, secret) {
			t.Errorf("%s is not among %q", secret, got)
		}
	}
	if strings.Contains(got, "value") {
		t.Errorf("%q holds what is no secret", got)
	}
}
