package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptest/mcptest-operator/engine/judge"
)

func noEnv(string) string { return "" }

func TestTheCommandLineIsCompleted(t *testing.T) {
	inPod := func(name string) string { return map[string]string{"POD_NAMESPACE": "mcptest"}[name] }
	o, err := parse([]string{"--runner-image=i", "--watch-namespaces=a, b,,a", "--log-level=debug"}, inPod, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := &options{
		collectorBind: ":8443", collectorURL: "https://mcptest-operator-collector.mcptest.svc:8443", collectorSecret: "mcptest-operator-collector",
		metricsBind: ":8080", probeBind: ":8081", namespace: "mcptest", watchNamespaces: []string{"a", "b"},
		runnerImage: "i", logLevel: slog.LevelDebug, logFormat: "json",
	}
	if diff := cmp.Diff(want, o, cmp.AllowUnexported(options{})); diff != "" {
		t.Error(diff)
	}
	hosts := []string{"mcptest-operator-collector.mcptest.svc", "mcptest-operator-collector.mcptest.svc.cluster.local"}
	if diff := cmp.Diff(hosts, o.collectorHosts()); diff != "" {
		t.Error(diff)
	}
}

func TestACommandLineThatCannotWorkIsRefused(t *testing.T) {
	good := []string{"--namespace=n", "--runner-image=i"}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no namespace":          {[]string{"--runner-image=i"}, "--namespace"},
		"no image":              {[]string{"--namespace=n"}, "--runner-image"},
		"a pull policy":         {append(good, "--runner-image-pull-policy=always"), "IfNotPresent"},
		"a URL without TLS":     {append(good, "--collector-url=http://x:1"), "https://HOST:PORT"},
		"a URL with a path":     {append(good, "--collector-url=https://x:1/a"), "https://HOST:PORT"},
		"a log format":          {append(good, "--log-format=xml"), "json or text"},
		"an argument":           {append(good, "serve"), "flags only"},
		"a flag that is no one": {append(good, "--colector-url=x"), "not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args, noEnv, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestPricesAreReadFromTheFileThatIsNamed(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "prices.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if p, err := (&options{}).prices(); err != nil || !p.Empty() {
		t.Errorf("prices = %v, %v; want none without a file", p, err)
	}
	p, err := (&options{pricesFile: write("models: {our-model: {input: 1, output: 5}}")}).prices()
	if usd, ok := p.Cost("our-model", judge.Tokens{Input: 1e6}); err != nil || !ok || usd != 1 {
		t.Errorf("a million tokens cost %v, %v, %v; want 1", usd, ok, err)
	}
	for name, tc := range map[string]struct{ path, want string }{
		"that is not there": {"/no/such/prices.yaml", "--prices: open /no/such/prices.yaml"},
		"without models":    {write("models: {}"), "write, for example, models:"},
		"with a typo":       {write("models: {m: {inputs: 1}}"), "inputs"},
	} {
		t.Run("a file "+name, func(t *testing.T) {
			if _, err := (&options{pricesFile: tc.path}).prices(); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "--prices") {
				t.Errorf("err = %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestTheVersionNeedsNoOtherFlag(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--version"}, noEnv, &out, io.Discard); err != nil || !strings.HasPrefix(out.String(), "mcptest-operator ") {
		t.Errorf("printed %q, %v", out.String(), err)
	}
}

func TestCachesKeepOnlyTheNamespacesThatAreWatched(t *testing.T) {
	if got := cacheOptions(nil); got.DefaultNamespaces != nil || len(got.ByObject) != 2 {
		t.Errorf("cache = %+v, want all namespaces, and Jobs and pods by label", got)
	}
	if got := cacheOptions([]string{"a"}).DefaultNamespaces; len(got) != 1 {
		t.Errorf("namespaces = %v, want a", got)
	}
	if o := metricsOptions(":8080"); !o.SecureServing || o.FilterProvider == nil {
		t.Error("metrics are served to everybody")
	}
}
