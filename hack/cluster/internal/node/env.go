//go:build unix

package node

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// objects reads what a pod refers to. Errors are those of the API server.
type objects interface {
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
}

// variables is an environment that keeps its order: later variables may refer to earlier ones.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) set(name, value string) {
	if _, ok := v.values[name]; !ok {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

// setDefault sets a variable that the pod did not.
func (v *variables) setDefault(name, value string) {
	if _, ok := v.values[name]; !ok {
		v.set(name, value)
	}
}

// expand replaces $(NAME) as a kubelet does: unknown names stay as they are, $$(NAME) is a literal.
func (v *variables) expand(s string) string {
	return expansion.Expand(s, expansion.MappingFuncFor(v.values))
}

// environ returns NAME=VALUE lines with the paths of mounts rewritten.
func (v *variables) environ(ms mounts) []string {
	lines := make([]string, 0, len(v.names))
	for _, n := range v.names {
		lines = append(lines, n+"="+ms.rewrite(v.values[n]))
	}
	return lines
}

// containerVariables is the environment that the pod's specification gives a container. Its errors have the words of
// a kubelet, and no values.
func containerVariables(ctx context.Context, pod *corev1.Pod, c *corev1.Container, src objects) (*variables, error) {
	v := &variables{values: map[string]string{}}
	for _, from := range c.EnvFrom {
		if err := v.addAll(ctx, pod.Namespace, from, src); err != nil {
			return nil, err
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			v.set(e.Name, v.expand(e.Value))
			continue
		}
		value, ok, err := valueFrom(ctx, pod, c, e.ValueFrom, src)
		if err != nil {
			return nil, err
		}
		if ok {
			v.set(e.Name, value)
		}
	}
	return v, nil
}

// addAll takes every key of a Secret or ConfigMap that is a possible variable name.
func (v *variables) addAll(ctx context.Context, namespace string, from corev1.EnvFromSource, src objects) error {
	data := map[string]string{}
	switch {
	case from.ConfigMapRef != nil:
		cm, err := src.ConfigMap(ctx, namespace, from.ConfigMapRef.Name)
		if err != nil {
			return unlessOptional("configmap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional, err)
		}
		data = cm.Data
	case from.SecretRef != nil:
		s, err := src.Secret(ctx, namespace, from.SecretRef.Name)
		if err != nil {
			return unlessOptional("secret", from.SecretRef.Name, from.SecretRef.Optional, err)
		}
		for k, value := range s.Data {
			data[k] = string(value)
		}
	}
	for _, k := range sortedKeys(data) {
		name := from.Prefix + k
		if name != "" && !strings.ContainsAny(name, "=\x00") {
			v.set(name, data[k])
		}
	}
	return nil
}

// valueFrom resolves one variable. It is not ok when it comes from something optional that is not there.
func valueFrom(ctx context.Context, pod *corev1.Pod, c *corev1.Container, from *corev1.EnvVarSource, src objects) (value string, ok bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = podField(pod, from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err = resourceField(pod, c, from.ResourceFieldRef)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		cm, err := src.ConfigMap(ctx, pod.Namespace, ref.Name)
		if err != nil {
			return "", false, unlessOptional("configmap", ref.Name, ref.Optional, err)
		}
		if value, ok := cm.Data[ref.Key]; ok {
			return value, true, nil
		}
		return "", false, unlessSet(ref.Optional, fmt.Errorf("couldn't find key %s in ConfigMap %s/%s", ref.Key, pod.Namespace, ref.Name))
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		s, err := src.Secret(ctx, pod.Namespace, ref.Name)
		if err != nil {
			return "", false, unlessOptional("secret", ref.Name, ref.Optional, err)
		}
		if value, ok := s.Data[ref.Key]; ok {
			return string(value), true, nil
		}
		return "", false, unlessSet(ref.Optional, fmt.Errorf("couldn't find key %s in Secret %s/%s", ref.Key, pod.Namespace, ref.Name))
	}
	return "", false, fmt.Errorf("a source of variables that a process node does not know: use fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef")
}

// unlessOptional gives a missing object the words of a kubelet, or no error when the object is optional.
func unlessOptional(kind, name string, optional *bool, err error) error {
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read %s %q: %w", kind, name, err)
	}
	return unlessSet(optional, fmt.Errorf("%s %q not found", kind, name))
}

func unlessSet(optional *bool, err error) error {
	if optional != nil && *optional {
		return nil
	}
	return err
}

// podField reads a field of the downward API.
func podField(pod *corev1.Pod, field string) (string, error) {
	switch field {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs":
		return nodeAddress, nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, field)
}

// resourceField reads a request or limit, in units of its divisor, rounded up. What is not limited is limited by the node.
func resourceField(pod *corev1.Pod, c *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	if ref.ContainerName != "" && ref.ContainerName != c.Name {
		for i := range pod.Spec.Containers {
			if pod.Spec.Containers[i].Name == ref.ContainerName {
				c = &pod.Spec.Containers[i]
			}
		}
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	list := c.Resources.Limits
	if kind == "requests" {
		list = c.Resources.Requests
	}
	quantity, ok := list[corev1.ResourceName(name)]
	if !ok && kind == "limits" {
		quantity, ok = capacity()[corev1.ResourceName(name)]
	}
	if !ok && kind != "requests" {
		return "", fmt.Errorf("unsupported container resource: %s", ref.Resource)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	return strconv.FormatInt(int64(math.Ceil(quantity.AsApproximateFloat64()/divisor.AsApproximateFloat64())), 10), nil
}
