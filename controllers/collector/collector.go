// Package collector is the HTTPS endpoint that runners post to (package wire): it tells a pod what it grades, keeps
// judgments so that none is paid for twice, and turns findings into the report of a row.
//
// It is stateless: every replica of the manager serves it, and all truth is in the API. What a runner may read and
// write follows from its token alone: token -> pod -> Job -> run -> slice. What a runner says about scores is
// recomputed from its judgments (S-2).
package collector

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/redact"
)

// Options say how a Collector works.
type Options struct {
	// Client reads from the caches of the manager and writes statuses. It must cache EvalRuns, and Jobs and pods that
	// have the label managed-by.
	Client client.Client
	// Reader reads live from the API server.
	Reader client.Reader
	// BindAddress is where to listen, as host:port or :port.
	BindAddress string
	// Certificate is what to serve with. It is renewed while the Collector runs.
	Certificate *Certificate
	// Prices are handed to runners: those that the operator was given beside those that this version knows.
	Prices judge.Prices
	// Events takes the event of a budget that is used up; nil: nobody is told.
	Events events.EventRecorder
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Registerer takes the metrics; nil: they are counted and shown nowhere.
	Registerer prometheus.Registerer
	// Log is where to log to. Default: the log of controller-runtime.
	Log *logr.Logger
}

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=eval.mcptest.dev,resources=evalruns,verbs=get;list;watch
// +kubebuilder:rbac:groups=eval.mcptest.dev,resources=evalruns/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;update

// Collector serves runners. It is a manager.Runnable that every replica runs.
type Collector struct {
	client      client.Client
	reader      client.Reader
	bindAddress string
	now         func() time.Time
	log         logr.Logger
	metrics     *metrics
	redactor    *redact.Redactor
	prices      judge.Prices
	events      events.EventRecorder

	reviews     *reviewCache
	assignments *assignmentCache
	claims      claimQueue
	requests    *semaphore.Weighted // how many requests are served at once
	bodies      *semaphore.Weighted // how many bytes of bodies are held at once

	certificate atomic.Pointer[Certificate]
	listening   chan struct{} // closed when address is set
	address     string
	serving     atomic.Bool
}

// New makes a Collector. It serves when it is started.
func New(o Options) *Collector {
	c := &Collector{
		client: o.Client, reader: o.Reader, bindAddress: o.BindAddress, now: o.Now,
		prices: o.Prices, events: o.Events,
		metrics:     newMetrics(o.Registerer),
		reviews:     newReviewCache(),
		assignments: newAssignmentCache(),
		requests:    semaphore.NewWeighted(maxRequests),
		bodies:      semaphore.NewWeighted(maxBodyBytes),
		listening:   make(chan struct{}),
	}
	if c.now == nil {
		c.now = time.Now
	}
	if o.Log != nil {
		c.log = *o.Log
	} else {
		c.log = log.Log.WithName("collector")
	}
	if o.Certificate != nil {
		c.certificate.Store(o.Certificate)
	}
	return c
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves.
func (c *Collector) NeedLeaderElection() bool { return false }

// CA is the certificate of the authority that runners trust, as PEM. It is that of the certificate which is served at
// this moment: pods that are made now must be given it.
func (c *Collector) CA() []byte {
	if cert := c.certificate.Load(); cert != nil {
		return cert.CAPEM
	}
	return nil
}

// Start serves until ctx ends, and then until the requests under way are answered, for at most 20 s.
func (c *Collector) Start(ctx context.Context) error {
	if c.certificate.Load() == nil {
		return errors.New("the collector has no certificate; make one with EnsureCertificate")
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", c.bindAddress)
	if err != nil {
		return fmt.Errorf("listening for runners: %w", err)
	}
	server := c.server(ctx)
	c.address = listener.Addr().String()
	close(c.listening)
	c.log.Info("serving runners", "address", c.address)

	renewals := make(chan struct{})
	renewing, stopRenewing := context.WithCancel(ctx)
	go func() {
		defer close(renewals)
		c.renewCertificate(renewing)
	}()
	defer func() { stopRenewing(); <-renewals }()

	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(listener, "", "") }()
	c.serving.Store(true)
	defer c.serving.Store(false)
	select {
	case err := <-failed:
		return fmt.Errorf("serving runners: %w", err)
	case <-ctx.Done():
	}
	c.serving.Store(false)
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(shutdown); err != nil {
		return errors.Join(fmt.Errorf("ending the requests of runners: %w", err), server.Close())
	}
	return nil
}

// Address is where the Collector listens; it waits for that until ctx ends.
func (c *Collector) Address(ctx context.Context) (string, error) {
	select {
	case <-c.listening:
		return c.address, nil
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for the collector to listen: %w", ctx.Err())
	}
}

// ReadyCheck is a healthz.Checker: it fails while the Collector does not serve.
func (c *Collector) ReadyCheck(*http.Request) error {
	if !c.serving.Load() {
		return errors.New("the collector does not serve yet, or no more")
	}
	return nil
}

// tlsConfig serves the certificate of the moment, so that a renewed one is used without a restart.
func (c *Collector) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &c.certificate.Load().TLS, nil
		},
	}
}
