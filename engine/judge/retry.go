package judge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

const (
	// backoffBase is the most that is waited before the first retry; it doubles with each.
	backoffBase = 500 * time.Millisecond
	// backoffCap is the most that is waited before any retry, unless Retry-After says more.
	backoffCap = 30 * time.Second
)

// send sends the conversation's request until it is answered (S-40). A feature that is refused is left out at once and
// for good; that is no fault, and no attempt.
func (c *conversation) send(ctx context.Context) (Response, Feature, error) {
	for attempt := 1; ; {
		res, without, err := c.once(ctx)
		if err == nil {
			return res, without, nil
		}
		var unsupported *UnsupportedError
		if errors.As(err, &unsupported) && unsupported.Feature != 0 && !without.Has(unsupported.Feature) {
			c.judge.remember(c.model, unsupported.Feature)
			continue
		}
		if ctx.Err() != nil || !retryable(err) {
			return Response{}, without, err
		}
		if attempt == c.judge.options.MaxAttempts {
			return Response{}, without, fmt.Errorf("given up after %d attempts: %w%s", attempt, err, unreachableHint(c.model.Provider, err))
		}
		if err := c.judge.pause(ctx, attempt, err); err != nil {
			return Response{}, without, err
		}
		attempt++
	}
}

// unreachableHint says what to look at when a provider never answered; nothing when it did.
func unreachableHint(p v1alpha1.Provider, err error) string {
	var transport *url.Error
	if !errors.As(err, &transport) {
		return ""
	}
	return "; check " + BaseURLVariable(p) + ", and that the judge can be reached from here"
}

// retryable reports whether a request that failed so may succeed when it is sent again (S-40): 408, 409, 429, 5xx
// and 529, broken answers, and whatever the transport says, except that a certificate is not trusted.
func retryable(err error) bool {
	var certificate *tls.CertificateVerificationError
	var status *StatusError
	switch {
	case errors.Is(err, ErrBudgetExceeded), errors.As(err, new(*UnpricedError)):
		return false
	case errors.As(err, &status):
		switch status.Status {
		case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
			return true
		default:
			return status.Status >= 500
		}
	case errors.As(err, &certificate):
		return false
	default:
		return true
	}
}

// pause waits before the next attempt: what the provider asked for, else exponential backoff with full jitter.
// It returns an error at once when the wait would outlast the context's deadline or MaxRetryAfter.
func (j *Judge) pause(ctx context.Context, attempt int, cause error) error {
	wait := backoffCap
	if shift := attempt - 1; shift < 16 {
		wait = min(backoffCap, backoffBase<<shift)
	}
	wait = time.Duration(j.options.Jitter() * float64(wait))

	var status *StatusError
	asked := errors.As(cause, &status) && status.RetryAfter > 0
	if asked {
		// The jitter comes on top, so that those who were told to wait alike do not come back alike.
		wait = min(wait, backoffBase) + status.RetryAfter
	}
	if asked && status.RetryAfter > j.options.MaxRetryAfter {
		return fmt.Errorf("it asks to wait %v, and the most that is waited is %v: %w", status.RetryAfter, j.options.MaxRetryAfter, cause)
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		switch {
		case asked && status.RetryAfter > left:
			return fmt.Errorf("it asks to wait %v, and only %v are left: %w", status.RetryAfter, left.Round(time.Millisecond), cause)
		case wait >= left && !asked:
			return fmt.Errorf("no time is left for another attempt: %w", cause)
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w, after: %w", context.Cause(ctx), cause)
	}
}
