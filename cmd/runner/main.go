// The runner is what the pods of an EvalRun run: it grades a slice of the run's rows and posts what it finds to the
// collector. It is configured by its environment alone and holds no credential of Kubernetes.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "golang.org/x/crypto/x509roots/fallback" // the judges' certificates, in an image without any

	"github.com/mcptest/mcptest-operator/cmd/runner/grading"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/engine/judge/providers"
	"github.com/mcptest/mcptest-operator/engine/redact"
)

// envPatience says how long the collector may be away, as a Go duration.
const envPatience = "MCPTEST_COLLECTOR_PATIENCE"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx)
	stop()
	os.Exit(code)
}

// run is main without the exit: it returns the exit code.
func run(ctx context.Context) int {
	redactor := redact.New(secrets()...)
	logger := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: redactAttr(redactor)}))
	options, err := optionsFromEnv()
	var result grading.Result
	code := wire.ExitUsage
	if err == nil {
		options.Redactor, options.Log = redactor, logger
		result, err = grading.Run(ctx, options)
		code = grading.ExitCode(err)
	}
	if err != nil {
		logger.Error("the slice was not graded to its end", "error", err, "exitCode", code)
	} else {
		logger.Info("all rows have their report", "rows", result.Rows, "passed", result.Passed, "failed", result.Failed,
			"deferred", result.Deferred, "errored", result.Errored, "earlier", result.Earlier)
	}
	path := os.Getenv(wire.EnvTerminationLog)
	if path == "" {
		path = wire.DefaultTerminationLog
	}
	if err := grading.WriteMessage(path, grading.Message(result, err, redactor)); err != nil {
		logger.Warn("the termination message is lost", "error", err)
	}
	return code
}

func optionsFromEnv() (grading.Options, error) {
	for _, name := range []string{wire.EnvURL, wire.EnvCA, wire.EnvTokenFile} {
		if os.Getenv(name) == "" {
			return grading.Options{}, fmt.Errorf("%s is not set; the runner is started by the Job of an EvalRun", name)
		}
	}
	collector, err := wire.NewClient(wire.ClientOptions{
		URL: os.Getenv(wire.EnvURL), CA: []byte(os.Getenv(wire.EnvCA)), TokenFile: os.Getenv(wire.EnvTokenFile),
	})
	if err != nil {
		return grading.Options{}, err
	}
	o := grading.Options{Collector: collector}
	if text := os.Getenv(envPatience); text != "" {
		if o.Patience, err = time.ParseDuration(text); err != nil || o.Patience <= 0 {
			return grading.Options{}, errors.New(envPatience + " is not a duration above 0, such as 5m")
		}
	}
	o.Judge.Clients, o.Env = providers.FromEnv(os.Getenv, nil)
	return o, nil
}

// secrets are the values that must never leave the process: every key in its environment, and its token.
func secrets() []string {
	var out []string
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if value = strings.TrimSpace(value); strings.HasSuffix(name, "_API_KEY") && value != "" {
			out = append(out, value)
		}
	}
	if token, err := os.ReadFile(os.Getenv(wire.EnvTokenFile)); err == nil && len(token) > 0 {
		out = append(out, strings.TrimSpace(string(token)))
	}
	return out
}

// redactAttr redacts what is logged: messages of providers and of the collector may hold anything.
func redactAttr(redactor *redact.Redactor) func([]string, slog.Attr) slog.Attr {
	return func(_ []string, a slog.Attr) slog.Attr {
		switch value := a.Value.Any().(type) {
		case string:
			a.Value = slog.StringValue(redactor.String(value))
		case error:
			a.Value = slog.StringValue(redactor.String(value.Error()))
		}
		return a
	}
}
