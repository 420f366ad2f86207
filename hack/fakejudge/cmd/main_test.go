package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestServesUntilItIsStopped(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"--ready-file", ready, "--latency", "1ms"}, in, io.Discard)
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var said struct{ StandIn, URL string }
	if err := json.Unmarshal([]byte(line), &said); err != nil || said.StandIn != "fakejudge" {
		t.Fatalf("announced %q (%v)", line, err)
	}
	resp, err := http.Get(said.URL + "/_fakejudge/stats")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Mcptest-Stand-In") != "fakejudge" {
		t.Errorf("stats: status %d, header %v", resp.StatusCode, resp.Header)
	}
	waitFor(t, func() bool {
		data, err := os.ReadFile(ready)
		return err == nil && strings.TrimSpace(string(data)) == said.URL
	})
	cancel()
	select {
	case got := <-code:
		if got != 0 {
			t.Errorf("exit code %d, want 0", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("did not stop")
	}
	if _, err := os.Stat(ready); !os.IsNotExist(err) {
		t.Errorf("the ready file is still there: %v", err)
	}
}

func TestBadInputExitsWith2AndSaysWhatToWrite(t *testing.T) {
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte("rules:\n- scor: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"an argument":         {[]string{"x"}, "everything is a flag"},
		"half a key pair":     {[]string{"--tls-cert", "c.pem"}, "write both or neither"},
		"a negative latency":  {[]string{"--latency", "-1s"}, "such as 200ms"},
		"rules that are gone": {[]string{"--rules", filepath.Join(dir, "none")}, "read the rules"},
		"rules with a typo":   {[]string{"--rules", rules}, `line 2: unknown field "scor"`},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := run(t.Context(), tc.args, io.Discard, &stderr); code != 2 || !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("exit %d, stderr %q; want 2 and %q", code, stderr.String(), tc.want)
			}
		})
	}
}

func TestHelpSaysThatItIsAStandIn(t *testing.T) {
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"--help"}, io.Discard, &stderr)
	for _, want := range []string{"STAND-IN", "ANTHROPIC_BASE_URL=URL ", "OPENAI_BASE_URL=URL/v1", "GEMINI_BASE_URL=URL ", "MISTRAL_BASE_URL=URL/v1"} {
		if code != 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("exit %d, no %q in the help %q", code, want, stderr.String())
		}
	}
}

func TestAnAddressThatCannotBeUsedExitsWith1(t *testing.T) {
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"--listen", "256.0.0.1:0"}, io.Discard, &stderr); code != 1 {
		t.Errorf("exit %d, want 1 (%s)", code, stderr.String())
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatal("not in time")
		case <-tick.C:
		}
	}
}
