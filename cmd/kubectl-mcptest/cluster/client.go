// Package cluster reads and makes the objects of mcptest-operator in a cluster, with as few requests as can be.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/nearest"
)

// The resources, as the API has them in URLs.
const (
	evals   = "evals"
	runs    = "evalruns"
	rubrics = "rubrics"
)

// chunk is how many objects one answer to a list has at most.
const chunk = 500

// Client speaks to one namespace of a cluster. It asks for no discovery: it knows its kinds.
type Client struct {
	rest *rest.RESTClient
	// Namespace is where all names are looked for.
	Namespace string
}

// New makes a client from kubectl's flags.
func New(flags *genericclioptions.ConfigFlags) (*Client, error) {
	loader := flags.ToRawKubeConfigLoader()
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w; set KUBECONFIG, or use --kubeconfig and --context", err)
	}
	return NewForConfig(config, namespace)
}

// NewForConfig makes a client for a namespace.
func NewForConfig(config *rest.Config, namespace string) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.QPS = -1
	if config.UserAgent == "" {
		config.UserAgent = "kubectl-mcptest"
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	return &Client{rest: client, Namespace: namespace}, nil
}

// explained adds to an error of the API what to do next.
func explained(err error, doing string) error {
	var status apierrors.APIStatus
	var network *url.Error
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == ""):
		return fmt.Errorf("%s: this cluster does not know %s: install mcptest-operator, or choose another cluster with --context", doing, v1alpha1.GroupVersion.Group)
	case errors.As(err, &network):
		return fmt.Errorf("%s: the cluster cannot be reached: %w; check --context and --kubeconfig", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func (c *Client) get(ctx context.Context, resource, name string, into runtime.Object) error {
	err := c.rest.Get().Namespace(c.Namespace).Resource(resource).Name(name).Do(ctx).Into(into)
	return explained(err, fmt.Sprintf("get %s %q", resource, name))
}

// Run gets an EvalRun. The error of one that is not there names the nearest.
func (c *Client) Run(ctx context.Context, name string) (*v1alpha1.EvalRun, error) {
	run := &v1alpha1.EvalRun{}
	err := c.get(ctx, runs, name, run)
	if !apierrors.IsNotFound(err) {
		return run, err
	}
	list, listErr := c.Runs(ctx, "")
	if listErr != nil {
		return nil, err
	}
	var names []string
	for i := range list {
		if list[i].Spec.Row == nil {
			names = append(names, list[i].Name)
		}
	}
	return nil, c.notFound("EvalRun", name, names, "evalruns")
}

// Eval gets an Eval. The error of one that is not there names the nearest.
func (c *Client) Eval(ctx context.Context, name string) (*v1alpha1.Eval, error) {
	eval := &v1alpha1.Eval{}
	err := c.get(ctx, evals, name, eval)
	if !apierrors.IsNotFound(err) {
		return eval, err
	}
	list, listErr := c.Evals(ctx, "")
	if listErr != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return nil, c.notFound("Eval", name, names, evals)
}

func (c *Client) notFound(kind, name string, names []string, resource string) error {
	if hint := nearest.Hint(name, names); hint != "" {
		return fmt.Errorf("%s %q not found in namespace %q%s", kind, name, c.Namespace, hint)
	}
	if len(names) == 0 {
		return fmt.Errorf("%s %q not found: namespace %q has none; choose another with -n", kind, name, c.Namespace)
	}
	return fmt.Errorf("%s %q not found in namespace %q; see kubectl get %s -n %s", kind, name, c.Namespace, resource, c.Namespace)
}

// Rubric gets a Rubric; nil when it is not there.
func (c *Client) Rubric(ctx context.Context, name string) (*v1alpha1.Rubric, error) {
	rubric := &v1alpha1.Rubric{}
	if err := c.get(ctx, rubrics, name, rubric); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return rubric, nil
}

// ConfigMap gets the data of a ConfigMap; nil when it is not there.
func (c *Client) ConfigMap(ctx context.Context, name string) (map[string]string, error) {
	data, err := c.rest.Get().AbsPath("/api/v1/namespaces", c.Namespace, "configmaps", name).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, explained(err, fmt.Sprintf("get configmap %q", name))
	}
	var found corev1.ConfigMap
	if err := json.Unmarshal(data, &found); err != nil {
		return nil, fmt.Errorf("read configmap %q: %w", name, err)
	}
	if found.Data == nil {
		found.Data = map[string]string{}
	}
	return found.Data, nil
}

// Evals lists the Evals with labels; all when the selector is empty.
func (c *Client) Evals(ctx context.Context, selector string) ([]v1alpha1.Eval, error) {
	var all []v1alpha1.Eval
	err := c.chunks(ctx, evals, selector, func(o metav1.ListOptions) (string, error) {
		var list v1alpha1.EvalList
		err := c.list(ctx, evals, o, &list)
		all = append(all, list.Items...)
		return list.Continue, err
	})
	return all, err
}

// Runs lists the EvalRuns with labels; all when the selector is empty.
func (c *Client) Runs(ctx context.Context, selector string) ([]v1alpha1.EvalRun, error) {
	var all []v1alpha1.EvalRun
	err := c.chunks(ctx, runs, selector, func(o metav1.ListOptions) (string, error) {
		var list v1alpha1.EvalRunList
		err := c.list(ctx, runs, o, &list)
		all = append(all, list.Items...)
		return list.Continue, err
	})
	return all, err
}

func (c *Client) list(ctx context.Context, resource string, o metav1.ListOptions, into runtime.Object) error {
	err := c.rest.Get().Namespace(c.Namespace).Resource(resource).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(into)
	return explained(err, "list "+resource)
}

// chunks asks for a list in parts until there are no more.
func (c *Client) chunks(ctx context.Context, resource, selector string, next func(metav1.ListOptions) (string, error)) error {
	o := metav1.ListOptions{LabelSelector: selector, Limit: chunk}
	for {
		token, err := next(o)
		if err != nil || token == "" {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("list %s: %w", resource, err)
		}
		o.Continue = token
	}
}

// CreateRun makes an EvalRun.
func (c *Client) CreateRun(ctx context.Context, run *v1alpha1.EvalRun) (*v1alpha1.EvalRun, error) {
	made := &v1alpha1.EvalRun{}
	err := c.rest.Post().Namespace(c.Namespace).Resource(runs).Body(run).Do(ctx).Into(made)
	return made, explained(err, "create the EvalRun")
}

// watchRun watches one EvalRun from a resource version on.
func (c *Client) watchRun(ctx context.Context, name, version string) (watch.Interface, error) {
	o := metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: version, Watch: true}
	return c.rest.Get().Namespace(c.Namespace).Resource(runs).VersionedParams(&o, metav1.ParameterCodec).Watch(ctx)
}

// OperatorImages are the images of the Deployments named as the chart names the operator, each once.
func (c *Client) OperatorImages(ctx context.Context) ([]string, error) {
	data, err := c.rest.Get().AbsPath("/apis/apps/v1/deployments").
		Param("labelSelector", "app.kubernetes.io/name="+v1alpha1.ManagedBy).Param("limit", "50").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		} `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read the deployments: %w", err)
	}
	var images []string
	for _, d := range list.Items {
		for _, container := range d.Spec.Template.Spec.Containers {
			images = append(images, container.Image)
		}
	}
	return images, nil
}
