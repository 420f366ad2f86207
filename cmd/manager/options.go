package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/mcptest/mcptest-operator/engine/judge"
)

// collectorService is the Service that the chart puts before the collector.
const collectorService = "mcptest-operator-collector"

// options are what the command line says.
type options struct {
	collectorBind   string
	collectorURL    string
	collectorSecret string
	metricsBind     string
	probeBind       string
	leaderElect     bool
	namespace       string
	watchNamespaces []string
	runnerImage     string
	runnerPull      corev1.PullPolicy
	defaultModel    string
	pricesFile      string
	logLevel        slog.Level
	logFormat       string
	showVersion     bool
}

// parse reads the command line. The error says which flag to change; it is flag.ErrHelp when help was asked for.
func parse(args []string, getenv func(string) string, stderr io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("manager", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.collectorBind, "collector-bind-address", ":8443", "Where the collector listens for runners, as host:port.")
	fs.StringVar(&o.collectorURL, "collector-url", "", "The URL at which runners find the collector. Default: https://"+collectorService+".NAMESPACE.svc:8443.")
	fs.StringVar(&o.collectorSecret, "collector-secret", collectorService, "The Secret that keeps the collector's certificate.")
	fs.StringVar(&o.metricsBind, "metrics-bind-address", ":8080", "Where metrics are served, over HTTPS and to those who may read /metrics; 0: nowhere.")
	fs.StringVar(&o.probeBind, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served; 0: nowhere.")
	fs.BoolVar(&o.leaderElect, "leader-elect", false, "Let one of several replicas do the work. All of them serve the collector.")
	fs.StringVar(&o.namespace, "namespace", getenv("POD_NAMESPACE"), "The namespace of the operator itself. Default: POD_NAMESPACE.")
	namespaces := fs.String("watch-namespaces", "", "The namespaces to work in, separated by commas. Default: all.")
	fs.StringVar(&o.runnerImage, "runner-image", "", "The image that pods of runs run. Required.")
	pull := fs.String("runner-image-pull-policy", "", "Always, IfNotPresent or Never. Default: the cluster's.")
	fs.StringVar(&o.defaultModel, "default-judge-model", "", "The judge model of evals that name none. Default: MCPTEST_JUDGE_MODEL of the judge's Secret, else the default of its provider.")
	fs.StringVar(&o.pricesFile, "prices", "", "A file with prices of models, added to those that this version knows: what costs are counted with, and what maxCost needs.")
	fs.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error.")
	fs.StringVar(&o.logFormat, "log-format", "json", "json or text.")
	fs.BoolVar(&o.showVersion, "version", false, "Print the version and end.")
	config.RegisterFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	o.runnerPull = corev1.PullPolicy(*pull)
	o.watchNamespaces = splitList(*namespaces)
	if o.showVersion {
		return o, nil
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the manager takes flags only", fs.Arg(0))
	}
	return o, o.complete()
}

// complete fills in what follows from the rest, and refuses what cannot work.
func (o *options) complete() error {
	if o.namespace == "" {
		return errors.New("set --namespace, or POD_NAMESPACE, to the namespace of the operator")
	}
	if o.runnerImage == "" {
		return errors.New("set --runner-image to the image that pods of runs run")
	}
	if !slices.Contains([]corev1.PullPolicy{"", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}, o.runnerPull) {
		return fmt.Errorf("--runner-image-pull-policy %q: write Always, IfNotPresent or Never", o.runnerPull)
	}
	if o.logFormat != "json" && o.logFormat != "text" {
		return fmt.Errorf("--log-format %q: write json or text", o.logFormat)
	}
	if o.collectorURL == "" {
		o.collectorURL = fmt.Sprintf("https://%s.%s.svc:8443", collectorService, o.namespace)
	}
	u, err := url.Parse(o.collectorURL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("--collector-url %q: write https://HOST:PORT", o.collectorURL)
	}
	o.collectorURL = strings.TrimSuffix(o.collectorURL, "/")
	return nil
}

// prices are those of the price file; none without one.
func (o *options) prices() (judge.Prices, error) {
	if o.pricesFile == "" {
		return judge.Prices{}, nil
	}
	file, err := os.Open(o.pricesFile)
	if err != nil {
		return judge.Prices{}, fmt.Errorf("--prices: %w", err)
	}
	defer file.Close()
	prices, err := judge.LoadPrices(file)
	if err != nil {
		return judge.Prices{}, fmt.Errorf("--prices %s: %w", o.pricesFile, err)
	}
	return prices, nil
}

// collectorHosts are the names and addresses that the collector's certificate is for.
func (o *options) collectorHosts() []string {
	u, err := url.Parse(o.collectorURL)
	if err != nil {
		return nil
	}
	hosts := []string{u.Hostname()}
	if strings.HasSuffix(u.Hostname(), ".svc") {
		hosts = append(hosts, u.Hostname()+".cluster.local")
	}
	return hosts
}

func (o *options) logHandler(w io.Writer) slog.Handler {
	h := &slog.HandlerOptions{Level: o.logLevel}
	if o.logFormat == "text" {
		return slog.NewTextHandler(w, h)
	}
	return slog.NewJSONHandler(w, h)
}

// splitList splits a list at its commas; empty parts are left out.
func splitList(list string) []string {
	var out []string
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" && !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out
}
