// Command fakejudge runs the stand-in judge: a server for demos and tests that
// speaks the wire formats of Anthropic Messages, OpenAI Chat Completions (also as
// Mistral has them) and the Gemini API, and asks no model.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mcptest/mcptest-operator/hack/fakejudge"
)

const (
	shutdownTimeout = 5 * time.Second

	exitFailed   = 1
	exitBadInput = 2
)

const usage = `fakejudge is a STAND-IN judge for demos and tests. It asks no model: its scores come
from a rules file or from a hash, and every reason it gives starts with
"[stand-in judge]". Never use its scores to decide anything.

It serves POST /v1/messages (Anthropic), POST /v1/chat/completions (OpenAI; Mistral for
the names of its models) and POST /v1beta/models/MODEL:generateContent (Gemini) under
any prefix, and counters and switches under /_fakejudge/. Once it listens it prints one
JSON line with its URL. Point the judges at it with any key and

  ANTHROPIC_BASE_URL=URL   OPENAI_BASE_URL=URL/v1
  GEMINI_BASE_URL=URL      MISTRAL_BASE_URL=URL/v1

Usage: fakejudge [flags]
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

type options struct {
	listen, rules, readyFile string
	tlsCert, tlsKey          string
	latency                  time.Duration
	keys                     []string
}

// run serves until ctx ends, and returns the exit code: 0 after a graceful stop,
// 1 when it could not serve, 2 for flags or rules that it cannot use.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		var srv *fakejudge.Server
		if srv, err = newServer(o); err == nil {
			if err := serve(ctx, o, srv, stdout, stderr); err != nil {
				fmt.Fprintln(stderr, "fakejudge:", err)
				return exitFailed
			}
			return 0
		}
	}
	fmt.Fprintln(stderr, "fakejudge:", err)
	return exitBadInput
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("fakejudge", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, usage)
		fs.PrintDefaults()
	}
	fs.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to listen on; port 0 picks a free one")
	fs.StringVar(&o.rules, "rules", "", "rules `file` (YAML); without one every score is by hash")
	fs.DurationVar(&o.latency, "latency", 0, "delay of every answer, such as 200ms; takes the place of the rules' latency")
	fs.StringVar(&o.tlsCert, "tls-cert", "", "certificate `file` (PEM); with --tls-key serves HTTPS")
	fs.StringVar(&o.tlsKey, "tls-key", "", "private key `file` (PEM)")
	fs.StringVar(&o.readyFile, "ready-file", "", "`file` to write the URL to once it listens; removed on exit")
	fs.Func("key", "an API `key` to accept; may be repeated; without it any key is accepted", func(s string) error {
		o.keys = append(o.keys, s)
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; everything is a flag, see --help", fs.Arg(0))
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return o, errors.New("--tls-cert and --tls-key go together; write both or neither")
	case o.latency < 0:
		return o, errors.New("--latency is negative; write a duration such as 200ms")
	}
	return o, nil
}

func newServer(o options) (*fakejudge.Server, error) {
	var rules fakejudge.Rules
	if o.rules != "" {
		data, err := os.ReadFile(o.rules)
		if err != nil {
			return nil, fmt.Errorf("read the rules: %w", err)
		}
		if rules, err = fakejudge.ParseRules(data); err != nil {
			return nil, fmt.Errorf("%s: %w", o.rules, err)
		}
	}
	if o.latency > 0 {
		rules.Latency = fakejudge.Fixed(o.latency)
	}
	return fakejudge.New(fakejudge.Options{Rules: rules, Keys: o.keys}), nil
}

func serve(ctx context.Context, o options, srv *fakejudge.Server, stdout, stderr io.Writer) (err error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", o.listen, err)
	}
	hs := fakejudge.NewHTTPServer(srv)
	scheme := "http"
	serveOn := hs.Serve
	if o.tlsCert != "" {
		scheme = "https"
		serveOn = func(ln net.Listener) error { return hs.ServeTLS(ln, o.tlsCert, o.tlsKey) }
	}
	done := make(chan error, 1)
	go func() { done <- serveOn(ln) }()

	url := scheme + "://" + ln.Addr().String()
	if err := announce(o, url, stdout, stderr); err != nil {
		srv.Close()
		return errors.Join(err, hs.Close())
	}
	if o.readyFile != "" {
		defer func() {
			if rerr := os.Remove(o.readyFile); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, fmt.Errorf("remove the ready file: %w", rerr))
			}
		}()
	}
	select {
	case err := <-done:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	srv.Close()
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := hs.Shutdown(stopCtx); err != nil {
		return errors.Join(fmt.Errorf("stop: %w", err), hs.Close())
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// announce says where the stand-in listens: a line on stdout, and the ready file,
// which appears whole or not at all.
func announce(o options, url string, stdout, stderr io.Writer) error {
	fmt.Fprintln(stderr, "fakejudge: this is a stand-in judge; no model is asked, its scores mean nothing")
	line, err := json.Marshal(map[string]string{"standIn": fakejudge.Name, "url": url})
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	if _, err := fmt.Fprintf(stdout, "%s\n", line); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	if o.readyFile == "" {
		return nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(o.readyFile), ".fakejudge-ready-*")
	if err != nil {
		return fmt.Errorf("write the ready file: %w", err)
	}
	_, werr := fmt.Fprintln(tmp, url)
	if err := errors.Join(werr, tmp.Close()); err != nil {
		return errors.Join(fmt.Errorf("write the ready file: %w", err), os.Remove(tmp.Name()))
	}
	if err := os.Rename(tmp.Name(), o.readyFile); err != nil {
		return errors.Join(fmt.Errorf("write the ready file: %w", err), os.Remove(tmp.Name()))
	}
	return nil
}
