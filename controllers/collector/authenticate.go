package collector

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/controllers/collector/wire"
	"github.com/mcptest/mcptest-operator/controllers/runtree"
)

const (
	// maxToken bounds what is sent to the API server as a token, in bytes.
	maxToken = 16 << 10
	// reviewLife is how long a token that was found good is taken for good without asking again. Its pod is looked up
	// for every request.
	reviewLife = time.Minute
	// maxReviews bounds how many tokens are remembered.
	maxReviews = 4096
)

// What the API server says about a token that is bound to a pod.
const (
	extraPodName         = "authentication.kubernetes.io/pod-name"
	extraPodUID          = "authentication.kubernetes.io/pod-uid"
	serviceAccountPrefix = "system:serviceaccount:"
)

// identity is the pod that a token belongs to.
type identity struct {
	namespace, pod string
	uid            types.UID
}

// authorize tells which pod sent a request, and which rows it grades. Everything is decided by what the API server
// says about the token, and by who controls whom, by UID. Whatever cannot be found is not allowed.
func (c *Collector) authorize(ctx context.Context, r *http.Request) (*grant, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" || len(token) > maxToken {
		return nil, refuse(http.StatusUnauthorized, reasonToken, "show the token of the pod, as Authorization: Bearer")
	}
	who, err := c.review(ctx, token)
	if err != nil {
		return nil, err
	}
	pod, err := c.podOf(ctx, who)
	if err != nil {
		return nil, err
	}
	job, err := c.jobOf(ctx, pod)
	if err != nil {
		return nil, err
	}
	root, err := c.rootOf(ctx, job)
	if err != nil {
		return nil, err
	}
	index, err := sliceIndex(pod)
	if err != nil {
		return nil, err
	}
	return c.grantOf(ctx, pod, job, root, index)
}

// review asks the API server about a token, at most once a minute.
func (c *Collector) review(ctx context.Context, token string) (identity, error) {
	key := sha256.Sum256([]byte(token))
	if who, ok := c.reviews.get(key, c.now()); ok {
		return who, nil
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{wire.Audience}}}
	if err := c.client.Create(ctx, review); err != nil {
		return identity{}, fmt.Errorf("reviewing a token: %w", err)
	}
	who, err := identify(review.Status)
	if err != nil {
		return identity{}, err
	}
	c.reviews.put(key, who, c.now())
	return who, nil
}

// identify reads the answer to a review: the token must be good for the collector, of a service account, and bound to
// a pod.
func identify(s authenticationv1.TokenReviewStatus) (identity, error) {
	// A server that knows no audiences answers without any; then nothing says that the token was meant for us.
	if !s.Authenticated || !slices.Contains(s.Audiences, wire.Audience) {
		return identity{}, refuse(http.StatusUnauthorized, reasonToken, "the token is not good for %s: it is expired, of another audience, or its pod is gone", wire.Audience)
	}
	account, ok := strings.CutPrefix(s.User.Username, serviceAccountPrefix)
	namespace, _, both := strings.Cut(account, ":")
	name, uid := s.User.Extra[extraPodName], s.User.Extra[extraPodUID]
	if !ok || !both || namespace == "" || len(name) != 1 || len(uid) != 1 || name[0] == "" || uid[0] == "" {
		return identity{}, refuse(http.StatusUnauthorized, reasonToken, "the token is not bound to a pod; a runner shows the token of its projected volume")
	}
	return identity{namespace: namespace, pod: name[0], uid: types.UID(uid[0])}, nil
}

// podOf finds the pod of a token. A pod that is being deleted may still post: it has its grace period for that.
func (c *Collector) podOf(ctx context.Context, who identity) (*corev1.Pod, error) {
	pod, err := find[corev1.Pod](ctx, c, who.namespace, who.pod, who.uid)
	switch {
	case err != nil:
		return nil, err
	case pod == nil:
		return nil, refuse(http.StatusUnauthorized, reasonPod, "the pod of the token is gone")
	case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return nil, refuse(http.StatusForbidden, reasonPod, "the pod ended")
	}
	return pod, nil
}

// jobOf finds the Job that controls a pod.
func (c *Collector) jobOf(ctx context.Context, pod *corev1.Pod) (*batchv1.Job, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1.SchemeGroupVersion.String() {
		return nil, refuse(http.StatusForbidden, reasonPod, "the pod does not belong to a Job")
	}
	job, err := find[batchv1.Job](ctx, c, pod.Namespace, owner.Name, owner.UID)
	if err == nil && job == nil {
		err = refuse(http.StatusForbidden, reasonPod, "the Job of the pod is gone")
	}
	return job, err
}

// rootOf finds the run that controls a Job. The Job of a run bears its name, so that a run has one Job.
func (c *Collector) rootOf(ctx context.Context, job *batchv1.Job) (*v1alpha1.EvalRun, error) {
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.Kind != "EvalRun" || owner.APIVersion != v1alpha1.GroupVersion.String() || owner.Name != job.Name {
		return nil, refuse(http.StatusForbidden, reasonPod, "the Job of the pod is not the Job of an EvalRun")
	}
	root, err := find[v1alpha1.EvalRun](ctx, c, job.Namespace, owner.Name, owner.UID)
	switch {
	case err != nil:
		return nil, err
	case root == nil, runtree.IsChild(root):
		return nil, refuse(http.StatusForbidden, reasonPod, "the run of the Job is gone")
	}
	return root, nil
}

// sliceIndex is which slice a pod grades: the index that the Job controller gave it.
func sliceIndex(pod *corev1.Pod) (int, error) {
	text := pod.Annotations[batchv1.JobCompletionIndexAnnotation]
	if label, ok := pod.Labels[batchv1.JobCompletionIndexAnnotation]; ok {
		if text == "" {
			text = label
		}
		if label != text {
			return 0, refuse(http.StatusForbidden, reasonSlice, "the pod's label and annotation %s differ", batchv1.JobCompletionIndexAnnotation)
		}
	}
	index, err := strconv.Atoi(text)
	if err != nil || index < 0 {
		return 0, refuse(http.StatusForbidden, reasonSlice, "the pod has no completion index; its Job must be Indexed")
	}
	return index, nil
}

// find reads an object from the cache and, when it is not there with this UID, live: what was just made may not have
// reached the cache. It returns nil when there is no such object. What it finds may be shared with the cache: it must
// not be changed.
func find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c *Collector, namespace, name string, uid types.UID) (P, error) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	cached := P(new(T))
	err := c.client.Get(ctx, key, cached, client.UnsafeDisableDeepCopy)
	if err == nil && cached.GetUID() == uid {
		return cached, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	live := P(new(T)) // decoding into the cached one would change the cache
	err = c.reader.Get(ctx, key, live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s live: %w", key, err)
	case live.GetUID() != uid:
		return nil, nil
	}
	return live, nil
}

// reviewCache remembers which tokens were found good, by their SHA-256.
type reviewCache struct {
	mu      sync.Mutex
	entries map[[sha256.Size]byte]reviewed
}

type reviewed struct {
	identity
	until time.Time
}

func newReviewCache() *reviewCache {
	return &reviewCache{entries: make(map[[sha256.Size]byte]reviewed)}
}

func (c *reviewCache) get(key [sha256.Size]byte, now time.Time) (identity, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[key]
	if !ok || !now.Before(entry.until) {
		return identity{}, false
	}
	return entry.identity, true
}

func (c *reviewCache) put(key [sha256.Size]byte, who identity, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxReviews {
		for k, entry := range c.entries {
			if !now.Before(entry.until) {
				delete(c.entries, k)
			}
		}
	}
	if len(c.entries) >= maxReviews {
		return // so many pods at once: their tokens are reviewed each time
	}
	c.entries[key] = reviewed{identity: who, until: now.Add(reviewLife)}
}
