// Command perf measures whole runs on a local cluster and prints the figures of docs/performance.md as a table.
//
//	make perf
//
// The judge is the stand-in with a fixed latency, so that the floor is known: calls x latency / calls at once.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/hack/fakejudge"
	"github.com/mcptest/mcptest-operator/test/local"
)

// load is a run to be measured.
type load struct {
	name           string
	rows, criteria int
	latency        time.Duration
}

// figures are what a run took.
type figures struct {
	wall, floor time.Duration
	calls       int32
	pods        int
	writes      map[string]float64
	managerMiB  float64
	maxInFlight int64
}

func main() {
	latency := flag.Duration("latency", 200*time.Millisecond, "how long the judge takes for an answer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, *latency)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "perf:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, latency time.Duration) error {
	dir := os.Getenv("CLUSTER_DIR")
	if dir == "" {
		return fmt.Errorf("CLUSTER_DIR is not set; run `make perf`")
	}
	b, err := newBench(ctx, dir)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Println("| run | calls | wall | floor | pods | most calls at once | API writes a row | manager RSS peak |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|")
	for _, l := range []load{
		{"1 row x 1 question", 1, 1, latency},
		{"100 rows x 5 criteria", 100, 5, latency},
		{"1000 rows x 5 criteria", 1000, 5, latency},
	} {
		f, err := b.run(ctx, l)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		var writes []string
		for _, resource := range []string{"evalruns", "jobs", "pods", "other"} {
			writes = append(writes, fmt.Sprintf("%s %.1f", resource, f.writes[resource]/float64(l.rows)))
		}
		fmt.Printf("| %s, judge %v | %d | %.2f s | %.2f s | %d | %d | %s | %.0f MiB |\n", l.name, l.latency, f.calls,
			f.wall.Seconds(), f.floor.Seconds(), f.pods, f.maxInFlight, strings.Join(writes, ", "), f.managerMiB)
	}
	return nil
}

// bench is a manager and a cluster to measure.
type bench struct {
	api     client.Client
	raw     kubernetes.Interface
	manager *local.Manager
}

func newBench(ctx context.Context, dir string) (*bench, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 100
	b := &bench{}
	if b.api, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if b.raw, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: local.SystemNamespace}}
	if err := client.IgnoreAlreadyExists(b.api.Create(ctx, ns)); err != nil {
		return nil, err
	}
	repo, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	if err := local.InstallCRDs(ctx, repo); err != nil {
		return nil, err
	}
	if b.manager, err = local.NewManager(repo, dir); err != nil {
		return nil, err
	}
	return b, b.manager.Start(ctx)
}

func (b *bench) close() { _ = b.manager.Kill() }

// run measures one run in a namespace of its own.
func (b *bench) run(ctx context.Context, l load) (figures, error) {
	var f figures
	judge, err := local.StartJudge(fakejudge.Options{Rules: fakejudge.Rules{Latency: fakejudge.Fixed(l.latency), Default: fakejudge.Default{Score: fakejudge.At(0.9)}}})
	if err != nil {
		return f, err
	}
	defer judge.Stop()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "perf-"}}
	if err := b.api.Create(ctx, ns); err != nil {
		return f, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: v1alpha1.DefaultJudgeSecret}, StringData: judge.Keys("no-real-key")}
	if err := b.api.Create(ctx, secret); err != nil {
		return f, err
	}
	evals := evalsOf(ns.Name, l)
	for i := range evals {
		if err := b.api.Create(ctx, &evals[i]); err != nil {
			return f, err
		}
	}
	before, err := b.writes(ctx)
	if err != nil {
		return f, err
	}
	run := &v1alpha1.EvalRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "perf"},
		Spec:       v1alpha1.EvalRunSpec{EvalSelector: &v1alpha1.EvalSelector{MatchLabels: map[string]v1alpha1.LabelValue{"perf": "yes"}}},
	}
	began := time.Now()
	if err := b.api.Create(ctx, run); err != nil {
		return f, err
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := b.api.Get(ctx, client.ObjectKeyFromObject(run), run)
		return run.Status.CompletionTime != nil, err
	})
	f.wall = time.Since(began)
	if err != nil {
		return f, err
	}
	if run.Status.Outcome != v1alpha1.OutcomePassed {
		return f, fmt.Errorf("the run ended as %s", run.Status.Outcome)
	}
	after, err := b.writes(ctx)
	if err != nil {
		return f, err
	}
	f.writes = make(map[string]float64)
	for resource, n := range after {
		f.writes[resource] = n - before[resource]
	}
	pods := &corev1.PodList{}
	if err := b.api.List(ctx, pods, client.InNamespace(ns.Name)); err != nil {
		return f, err
	}
	f.pods, f.calls = len(pods.Items), run.Status.Summary.Calls
	f.maxInFlight = judge.Stats().MaxInFlight
	atOnce := min(int64(f.pods)*v1alpha1.DefaultConcurrency, int64(f.calls))
	f.floor = time.Duration(int64(f.calls) * int64(l.latency) / atOnce)
	f.managerMiB, err = peakMiB(b.manager.PID())
	return f, err
}

// evalsOf makes the evals of a load: 100 rows each, as a matrix of prompts.
func evalsOf(namespace string, l load) []v1alpha1.Eval {
	const rowsEach = 100
	var evals []v1alpha1.Eval
	for first := 0; first < l.rows; first += rowsEach {
		response := fmt.Sprintf("Answer %d: it is a round, red fruit that grows on trees.", first)
		spec := v1alpha1.EvalSpec{
			Response: &response,
			Judge:    &v1alpha1.JudgeSpec{Model: "claude-sonnet-5-5"},
			Rubric:   &v1alpha1.RubricSource{},
			Matrix:   &v1alpha1.Matrix{},
		}
		for i := range l.criteria {
			spec.Rubric.Criteria = append(spec.Rubric.Criteria, v1alpha1.Criterion{
				Name: fmt.Sprint("c", i), Description: fmt.Sprintf("The answer has quality %d.", i),
			})
		}
		for i := first; i < min(l.rows, first+rowsEach); i++ {
			spec.Matrix.Prompts = append(spec.Matrix.Prompts, fmt.Sprintf("Describe apple %d.", i))
		}
		evals = append(evals, v1alpha1.Eval{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("perf-%05d", first), Labels: map[string]string{"perf": "yes"}},
			Spec:       spec,
		})
	}
	return evals
}

// requests is a line of the API server's own counter of requests.
var requests = regexp.MustCompile(`^apiserver_request_total\{(.*)\} ([0-9.e+]+)$`)

// writes reads how many writes the API server has done, by resource.
func (b *bench) writes(ctx context.Context) (map[string]float64, error) {
	data, err := b.raw.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	counts := make(map[string]float64)
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		m := requests.FindStringSubmatch(lines.Text())
		if m == nil || !isWrite(m[1]) {
			continue
		}
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", lines.Text(), err)
		}
		resource := "other"
		for _, r := range []string{"evalruns", "jobs", "pods"} {
			if strings.Contains(m[1], `resource="`+r+`"`) {
				resource = r
			}
		}
		counts[resource] += n
	}
	return counts, lines.Err()
}

func isWrite(labels string) bool {
	for _, verb := range []string{"POST", "PUT", "PATCH", "DELETE", "APPLY"} {
		if strings.Contains(labels, `verb="`+verb+`"`) {
			return !strings.Contains(labels, `resource="leases"`) && !strings.Contains(labels, "reviews")
		}
	}
	return false
}

// peakMiB is the most memory that a process ever had resident; 0 where the system does not tell.
func peakMiB(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			return kib / 1024, err
		}
	}
	return 0, nil
}
