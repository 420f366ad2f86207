package gemini

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"sync"

	"google.golang.org/genai"
)

// exchange is what one request came to over HTTP. The SDK's errors have neither headers nor the whole body.
type exchange struct {
	// response is nil when there was none.
	response *http.Response
	// body is the body of an error, the first 64 KiB of it.
	body []byte
}

// exchangeKey is under which a context holds an *exchange.
type exchangeKey struct{}

// recording makes a client note each exchange in the context of its request.
func recording(c *http.Client) *http.Client {
	c.Transport = recorder{c.Transport}
	return c
}

type recorder struct{ next http.RoundTripper }

func (t recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return t.next.RoundTrip(r)
	}
	res, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	x.response = res
	if res.StatusCode < 200 || res.StatusCode >= 300 {
		// A body that breaks off has fewer words; what was read is put back for the SDK.
		x.body, _ = io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
		_ = res.Body.Close()
		res.Body = io.NopCloser(bytes.NewReader(x.body))
	}
	return res, nil
}

// bothKeys is what the SDK logs when it finds both variables of a key in the environment. It counts neither of them here,
// and it is wrong about which of them does (S-24).
const bothKeys = "Both GOOGLE_API_KEY and GEMINI_API_KEY are set"

// quiet is held while the standard logger is filtered.
var quiet sync.Mutex

// newSDK makes a client of the SDK's, and keeps that line out of the standard logger; every other one passes.
func newSDK(c *genai.ClientConfig) (*genai.Client, error) {
	quiet.Lock()
	defer quiet.Unlock()
	out := log.Writer()
	log.SetOutput(without{out})
	defer log.SetOutput(out)
	// The context is for credentials of Google Cloud; there are none.
	return genai.NewClient(context.Background(), c)
}

// without drops the line about both keys.
type without struct{ io.Writer }

func (w without) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(bothKeys)) {
		return len(line), nil
	}
	return w.Writer.Write(line)
}
