//go:build unix

package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// apiServerUser is whose client certificate opens the node's endpoint, and nobody else's.
const apiServerUser = "kube-apiserver-kubelet-client"

// logOf says which run of a container a log is of.
type logOf int

const (
	currentRun logOf = iota
	previousRun
)

// followEvery is how often a followed log is looked at for more.
const followEvery = 200 * time.Millisecond

// serve serves what `kubectl logs` needs, at a free port, which it returns.
func (a *Agent) serve() (port int32, stop func(), err error) {
	cert, err := tls.LoadX509KeyPair(a.opts.ServingCert, a.opts.ServingKey)
	if err != nil {
		return 0, nil, fmt.Errorf("load the node's certificate: %w", err)
	}
	ca, err := os.ReadFile(a.opts.ClientCA)
	if err != nil {
		return 0, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return 0, nil, fmt.Errorf("no certificate in %s", a.opts.ClientCA)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(nodeAddress, "0"))
	if err != nil {
		return 0, nil, fmt.Errorf("listen for the API server: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", a.serveLog)
	server := &http.Server{Handler: onlyAPIServer(mux), ReadHeaderTimeout: 10 * time.Second}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}
	go func() {
		if err := server.Serve(tls.NewListener(l, config)); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error("the node's endpoint ended", "err", err)
		}
	}()
	return int32(l.Addr().(*net.TCPAddr).Port), func() { _ = server.Close() }, nil
}

// onlyAPIServer refuses everybody but the API server: other holders of the authority's certificates are just users.
func onlyAPIServer(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || r.TLS.PeerCertificates[0].Subject.CommonName != apiServerUser {
			http.Error(w, "only the API server may ask a node", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// serveLog answers as a kubelet does to follow, previous, tailLines and limitBytes. Lines bear no times.
func (a *Agent) serveLog(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	run := currentRun
	if q.Get("previous") == "true" {
		run = previousRun
	}
	path, err := a.logFile(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), run)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	f, err := os.Open(path)
	if err != nil {
		http.Error(w, "the container has no such log yet", http.StatusBadRequest)
		return
	}
	defer func() { _ = f.Close() }()
	if n, err := strconv.ParseInt(q.Get("tailLines"), 10, 64); err == nil {
		if err := seekTail(f, n); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain")
	var out io.Writer = w
	if n, err := strconv.ParseInt(q.Get("limitBytes"), 10, 64); err == nil {
		out = &limitedWriter{w: w, left: n}
	}
	if _, err := io.Copy(out, f); err != nil || q.Get("follow") != "true" || run == previousRun {
		return
	}
	follow(r.Context(), out, http.NewResponseController(w), f)
}

// follow goes on until the container has ended, or the client has.
func follow(ctx context.Context, out io.Writer, flusher *http.ResponseController, f *os.File) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		// Asked before the rest is copied, so that nothing that was written before the end is lost.
		ended := !written(f)
		if _, err := io.Copy(out, f); err != nil {
			return
		}
		_ = flusher.Flush()
		if ended {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// written reports whether a container still writes this log: while it runs, its pid file lies beside the log.
func written(log *os.File) bool {
	current, err := os.Stat(log.Name())
	if err != nil {
		return false
	}
	opened, err := log.Stat()
	if err != nil || !os.SameFile(current, opened) {
		return false
	}
	_, err = os.Stat(containerFiles(filepath.Dir(log.Name())).pid())
	return err == nil
}

var errLimit = errors.New("the limit of bytes is reached")

// limitedWriter takes a number of bytes and then fails.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) <= l.left {
		l.left -= int64(len(p))
		return l.w.Write(p)
	}
	n, err := l.w.Write(p[:l.left])
	l.left -= int64(n)
	if err == nil {
		err = errLimit
	}
	return n, err
}

// seekTail moves to the beginning of the last n lines of a file.
func seekTail(f *os.File, n int64) error {
	pos, err := f.Seek(0, io.SeekEnd)
	if err != nil || n <= 0 {
		return err
	}
	buf := make([]byte, 32<<10)
	for end, lines := pos, int64(0); end > 0; {
		start := max(0, end-int64(len(buf)))
		chunk := buf[:end-start]
		if _, err := f.ReadAt(chunk, start); err != nil {
			return err
		}
		for i := bytes.LastIndexByte(chunk, '\n'); i >= 0; i = bytes.LastIndexByte(chunk[:i], '\n') {
			at := start + int64(i) + 1
			if at == pos {
				continue // the end of the last line
			}
			if lines++; lines == n {
				_, err := f.Seek(at, io.SeekStart)
				return err
			}
		}
		end = start
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}
