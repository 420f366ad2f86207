// Command manager is the operator: it runs EvalRuns, and serves the collector that their pods report to.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	_ "golang.org/x/crypto/x509roots/fallback" // the image has no roots of its own
)

func main() {
	ctx := ctrl.SetupSignalHandler()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// run is the program with its surroundings passed in. It ends when ctx does.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	o, err := parse(args, getenv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case o.showVersion:
		_, err := fmt.Fprintln(stdout, versionText())
		return err
	}
	log := logr.FromSlogHandler(o.logHandler(stderr))
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client"))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	mgr, err := newManager(ctx, config, o)
	if err != nil {
		return err
	}
	log.Info("starting", "version", versionText(), "collector", o.collectorURL, "runnerImage", o.runnerImage, "namespaces", o.watchNamespaces)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}
