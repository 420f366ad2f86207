//go:build unix

package node

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refreshVolumes is how often Secrets and ConfigMaps of a running pod are read again.
const refreshVolumes = time.Minute

// volumes makes and renews the volumes of one pod.
type volumes struct {
	agent *Agent
	dir   string
	// next is when the volumes have to be looked at again; zero before they were made.
	next time.Time
	// tokens are those that were issued, by volume and path.
	tokens map[string]token
}

// token is a service account token and when to replace it.
type token struct {
	value   string
	renewAt time.Time
}

// payload are the files of a volume, by their path in it.
type payload map[string]file

type file struct {
	data []byte
	mode os.FileMode
}

// prepare makes what is missing and renews what is due. It returns when it has to be called again.
func (v *volumes) prepare(ctx context.Context, pod *corev1.Pod, now time.Time) (*problem, time.Time) {
	if !v.next.IsZero() && now.Before(v.next) {
		return nil, v.next
	}
	if v.tokens == nil {
		v.tokens = map[string]token{}
	}
	again := time.Time{}
	for i := range pod.Spec.Volumes {
		vol := &pod.Spec.Volumes[i]
		dir := volumeDir(v.dir, vol.Name)
		if vol.EmptyDir != nil {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return mountProblem(vol.Name, err), now
			}
			continue
		}
		files, renewAt, err := v.payload(ctx, pod, vol, now)
		if err == nil {
			err = writeVolume(dir, files)
		}
		if err != nil {
			return mountProblem(vol.Name, err), now
		}
		if again.IsZero() || renewAt.Before(again) {
			again = renewAt
		}
	}
	if again.IsZero() {
		again = now.Add(365 * 24 * time.Hour) // nothing to renew
	}
	v.next = again
	return nil, again
}

func mountProblem(volume string, err error) *problem {
	return &problem{
		reason: "FailedMount", message: fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", volume, err),
		passing: apierrors.IsForbidden(err),
	}
}

// payload reads the content of a volume.
func (v *volumes) payload(ctx context.Context, pod *corev1.Pod, vol *corev1.Volume, now time.Time) (payload, time.Time, error) {
	renewAt := now.Add(refreshVolumes)
	files := payload{}
	switch {
	case vol.Secret != nil:
		s := vol.Secret
		err := addSecret(ctx, files, pod.Namespace, s.SecretName, s.Items, modeOf(s.DefaultMode), s.Optional, v.agent)
		return files, renewAt, err
	case vol.ConfigMap != nil:
		cm := vol.ConfigMap
		err := addConfigMap(ctx, files, pod.Namespace, cm.Name, cm.Items, modeOf(cm.DefaultMode), cm.Optional, v.agent)
		return files, renewAt, err
	case vol.DownwardAPI != nil:
		err := addFields(files, pod, vol.DownwardAPI.Items, modeOf(vol.DownwardAPI.DefaultMode))
		return files, renewAt, err
	case vol.Projected != nil:
		mode := modeOf(vol.Projected.DefaultMode)
		for _, src := range vol.Projected.Sources {
			var err error
			switch {
			case src.Secret != nil:
				err = addSecret(ctx, files, pod.Namespace, src.Secret.Name, src.Secret.Items, mode, src.Secret.Optional, v.agent)
			case src.ConfigMap != nil:
				err = addConfigMap(ctx, files, pod.Namespace, src.ConfigMap.Name, src.ConfigMap.Items, mode, src.ConfigMap.Optional, v.agent)
			case src.DownwardAPI != nil:
				err = addFields(files, pod, src.DownwardAPI.Items, mode)
			case src.ServiceAccountToken != nil:
				var t token
				if t, err = v.token(ctx, pod, vol.Name, src.ServiceAccountToken, now); err == nil {
					files[path.Clean(src.ServiceAccountToken.Path)] = file{data: []byte(t.value), mode: mode}
					if t.renewAt.Before(renewAt) {
						renewAt = t.renewAt
					}
				}
			default:
				err = fmt.Errorf("a projected source that a process node does not know: use secret, configMap, downwardAPI or serviceAccountToken")
			}
			if err != nil {
				return nil, now, err
			}
		}
		return files, renewAt, nil
	}
	return nil, now, fmt.Errorf("a kind of volume that a process node does not know: use emptyDir, secret, configMap, downwardAPI or projected")
}

// token returns a token that is bound to the pod, and renews it after four fifths of its life or a day, like a kubelet.
func (v *volumes) token(ctx context.Context, pod *corev1.Pod, volume string, p *corev1.ServiceAccountTokenProjection, now time.Time) (token, error) {
	key := volume + "/" + p.Path
	if t, ok := v.tokens[key]; ok && now.Before(t.renewAt) {
		return t, nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: p.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if p.Audience != "" {
		request.Spec.Audiences = []string{p.Audience}
	}
	issued, err := v.agent.requestToken(ctx, pod.Namespace, pod.Spec.ServiceAccountName, request)
	if err != nil {
		return token{}, fmt.Errorf("failed to fetch token: %w", err)
	}
	life := issued.Status.ExpirationTimestamp.Sub(now)
	t := token{value: issued.Status.Token, renewAt: now.Add(min(life*4/5, 24*time.Hour))}
	v.tokens[key] = t
	return t, nil
}

// remove deletes the volumes of a pod that is over; secrets are not left lying about.
func (v *volumes) remove() { _ = os.RemoveAll(filepath.Join(v.dir, ".volumes")) }

func addSecret(ctx context.Context, into payload, namespace, name string, items []corev1.KeyToPath, mode os.FileMode, optional *bool, src objects) error {
	s, err := src.Secret(ctx, namespace, name)
	if err != nil {
		return unlessOptional("secret", name, optional, err)
	}
	return addKeys(into, s.Data, items, mode, optional, fmt.Sprintf("secret %s/%s", namespace, name))
}

func addConfigMap(ctx context.Context, into payload, namespace, name string, items []corev1.KeyToPath, mode os.FileMode, optional *bool, src objects) error {
	cm, err := src.ConfigMap(ctx, namespace, name)
	if err != nil {
		return unlessOptional("configmap", name, optional, err)
	}
	data := maps.Clone(cm.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for k, value := range cm.Data {
		data[k] = []byte(value)
	}
	return addKeys(into, data, items, mode, optional, fmt.Sprintf("configmap %s/%s", namespace, name))
}

// addKeys adds all keys under their names, or the named ones under the paths that items give them.
func addKeys(into payload, data map[string][]byte, items []corev1.KeyToPath, mode os.FileMode, optional *bool, of string) error {
	if len(items) == 0 {
		for k, value := range data {
			into[k] = file{data: value, mode: mode}
		}
		return nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok {
			if err := unlessSet(optional, fmt.Errorf("references non-existent %s key: %s", of, item.Key)); err != nil {
				return err
			}
			continue
		}
		f := file{data: value, mode: mode}
		if item.Mode != nil {
			f.mode = os.FileMode(*item.Mode)
		}
		into[path.Clean(item.Path)] = f
	}
	return nil
}

func addFields(into payload, pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode os.FileMode) error {
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = podField(pod, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, err = resourceField(pod, &corev1.Container{}, item.ResourceFieldRef)
		}
		if err != nil {
			return err
		}
		f := file{data: []byte(value), mode: mode}
		if item.Mode != nil {
			f.mode = os.FileMode(*item.Mode)
		}
		into[path.Clean(item.Path)] = f
	}
	return nil
}

func modeOf(mode *int32) os.FileMode {
	if mode == nil {
		return 0o644
	}
	return os.FileMode(*mode)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
