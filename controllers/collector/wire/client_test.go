package wire

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newClient(t *testing.T, handler http.HandlerFunc) (*Client, *httptest.Server) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(" token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(ClientOptions{
		URL: server.URL, TokenFile: token, Timeout: 5 * time.Second,
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, server
}

func TestNewClientRefusesWhatIsNotSafe(t *testing.T) {
	for name, tc := range map[string]struct {
		o    ClientOptions
		says string
	}{
		"no encryption": {ClientOptions{URL: "http://collector", TokenFile: "t"}, "https"},
		"no host":       {ClientOptions{URL: "https:///v1", TokenFile: "t"}, "https"},
		"no URL":        {ClientOptions{URL: "://", TokenFile: "t"}, "https"},
		"no authority":  {ClientOptions{URL: "https://collector", CA: []byte("none"), TokenFile: "t"}, "PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewClient(tc.o); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestTheTokenIsShownToTheCollectorAlone(t *testing.T) {
	elsewhere := 0
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	t.Setenv("HTTPS_PROXY", other.URL)
	c, _ := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			t.Errorf("Authorization = %q", r.Header.Get("Authorization"))
		}
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	_, err := c.Slice(t.Context())
	if Status(err) != http.StatusTemporaryRedirect || elsewhere != 0 {
		t.Errorf("err = %v; %d requests went elsewhere", err, elsewhere)
	}
}

func TestARefusalSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		wait   string
		says   string
		want   time.Duration
	}{
		"a problem":         {`{"message":"it is not your slice"}`, "", "it is not your slice", 0},
		"no problem":        {`<html>`, "", "Service Unavailable", 0},
		"come again":        {`{}`, "7", "Service Unavailable", 7 * time.Second},
		"in a year":         {`{}`, "31536000", "Service Unavailable", maxRetryAfter},
		"a date is no wait": {`{}`, "Fri, 20 Nov 2026 12:00:00 GMT", "Service Unavailable", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tc.wait)
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = w.Write([]byte(tc.answer))
			})
			err := c.PostJudgments(t.Context(), Judgments{})
			var refused *StatusError
			if !errors.As(err, &refused) || refused.Message != tc.says || refused.RetryAfter != tc.want {
				t.Errorf("err = %+v", err)
			}
		})
	}
}

func TestTemporary(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":             {nil, false},
		"told to stop":        {context.Canceled, false},
		"too slow":            {context.DeadlineExceeded, true},
		"the network":         {errors.New("connection refused"), true},
		"too busy":            {&StatusError{Status: 503}, true},
		"broken":              {fmt.Errorf("asking: %w", &StatusError{Status: 500}), true},
		"too often":           {&StatusError{Status: 429}, true},
		"not let in":          {&StatusError{Status: 401}, false},
		"not its slice":       {&StatusError{Status: 403}, false},
		"another report":      {&StatusError{Status: 409}, false},
		"what it says is odd": {&StatusError{Status: 422}, false},
		"too long":            {&permanentError{errors.New("too long")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Temporary(tc.err); got != tc.want {
				t.Errorf("Temporary(%v) = %v, want %v", tc.err, got, tc.want)
			}
		})
	}
}

func TestAnswersAreBounded(t *testing.T) {
	c, _ := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		blank := make([]byte, 1<<20)
		for range MaxBody>>20 + 1 {
			if _, err := w.Write(blank); err != nil {
				return
			}
		}
	})
	if _, err := c.Leaf(t.Context(), "row"); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("err = %v", err)
	}
}

func TestAHangingCollectorIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	c, _ := newClient(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	c.http.Timeout = 50 * time.Millisecond
	if _, err := c.Slice(t.Context()); err == nil || !Temporary(err) {
		t.Errorf("err = %v", err)
	}
}
