package wire

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"nothing":                      {nil, 0},
		"seconds":                      {map[string]string{"Retry-After": "7"}, 7 * time.Second},
		"parts of seconds":             {map[string]string{"Retry-After": " 0.5 "}, 500 * time.Millisecond},
		"a date":                       {map[string]string{"Retry-After": "Fri, 20 Nov 2026 12:00:30 GMT"}, 30 * time.Second},
		"a date that has passed":       {map[string]string{"Retry-After": "Fri, 20 Nov 2026 11:00:00 GMT"}, 0},
		"milliseconds come first":      {map[string]string{"Retry-After": "7", "Retry-After-Ms": "250"}, 250 * time.Millisecond},
		"a negative number":            {map[string]string{"Retry-After": "-5"}, 0},
		"no number":                    {map[string]string{"Retry-After": "soon"}, 0},
		"NaN":                          {map[string]string{"Retry-After": "NaN"}, 0},
		"more than a duration can say": {map[string]string{"Retry-After": "1e300"}, 24 * time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range tt.header {
				h.Set(k, v)
			}
			if got := RetryAfter(h, now); got != tt.want {
				t.Errorf("RetryAfter = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestMessagesAreOneShortLine(t *testing.T) {
	for name, tt := range map[string]struct{ body, want string }{
		"an object":          {`{"error":{"message":"a\n b"}}`, "a b"},
		"a string":           {`{"error":"a"}`, "a"},
		"beside the error":   {`{"message":"a"}`, "a"},
		"no JSON":            {" a\n\n b ", "a b"},
		"bytes of no UTF-8":  {"a\xff", "a\uFFFD"},
		"a long one":         {strings.Repeat("é", 1000), strings.Repeat("é", 250) + "…"},
		"nothing":            {"", ""},
		"JSON without words": {`{"code":1}`, `{"code":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := message([]byte(tt.body)); got != tt.want {
				t.Errorf("message = %q, want %q", got, tt.want)
			}
		})
	}
}
