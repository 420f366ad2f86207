#!/usr/bin/env bash
# The operator as a team would install it: its image built from the Dockerfile, its chart installed with Helm, in a
# cluster with a real kubelet and container runtime, in namespaces that enforce restricted pods.
#
# `make e2e` builds what this needs and calls it. It needs root on Linux, and installs buildah and containerd from
# Debian's packages where they are missing.
set -euo pipefail
cd "$(dirname "$0")/../.."

image=${IMAGE:?run make e2e}
readonly image
readonly system=mcptest-system team=team-a

step() { printf '\n--- %s (%ss)\n' "$*" "$SECONDS"; }

fail() {
  printf '\nFAIL: %s\n' "$*" >&2
  exit 1
}

# expect WHAT WANT GOT
expect() {
  if [[ $3 != "$2" ]]; then
    fail "$1: want '$2', got '$3'"
  fi
  printf 'ok: %s is %s\n' "$1" "$2"
}

# contains WHAT TEXT WANT
contains() {
  if [[ $2 != *"$3"* ]]; then
    printf '%s\n' "${2:0:2000}" >&2
    fail "$1 does not say '$3'"
  fi
  printf 'ok: %s says %s\n' "$1" "$3"
}

build_image() {
  if ! command -v buildah >/dev/null || ! command -v curl >/dev/null; then
    step "installing buildah and curl"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends buildah curl ca-certificates >/dev/null
  fi
  step "building $image from the Dockerfile"
  rm -f dist/image.tar
  buildah --storage-driver vfs bud --quiet --isolation chroot --tag "$image" -f Dockerfile dist/image >/dev/null
  buildah --storage-driver vfs push --quiet "$image" "docker-archive:dist/image.tar:$image"
}

judge_pid=""
tell() {
  local code=$?
  if ((code != 0)); then
    kubectl get pods,jobs,er -A -o wide >&2 || true
    kubectl describe er -n "$team" >&2 || true
    kubectl logs -n "$system" -l app.kubernetes.io/name=mcptest-operator --tail=100 --prefix >&2 || true
  fi
  if [[ -n $judge_pid ]]; then kill "$judge_pid" 2>/dev/null || true; fi
  return "$code"
}

start_judge() {
  local node
  node=$(kubectl get nodes -o jsonpath='{.items[0].status.addresses[?(@.type=="InternalIP")].address}')
  bin/fakejudge --listen "$node:0" --rules hack/demo-rules.yaml --latency 300ms --ready-file "$CLUSTER_DIR/judge.url" >/dev/null 2>"$CLUSTER_DIR/judge.log" &
  judge_pid=$!
  local deadline=$((SECONDS + 20))
  until [[ -s $CLUSTER_DIR/judge.url ]]; do
    ((SECONDS < deadline)) || fail "the stand-in judge did not start: $(cat "$CLUSTER_DIR/judge.log")"
    sleep 0.1
  done
  judge=$(tr -d '[:space:]' <"$CLUSTER_DIR/judge.url")
}

stats() { curl --silent --fail --max-time 10 "$judge/_fakejudge/stats"; }

install() {
  step "installing the chart"
  kubectl create namespace "$system"
  kubectl label namespace "$system" pod-security.kubernetes.io/enforce=restricted
  go tool -modfile=hack/tools/helm/go.mod helm install mcptest-operator charts/mcptest-operator \
    --namespace "$system" --set "image.repository=${image%:*}" --set "image.tag=${image##*:}" --set image.pullPolicy=Never \
    --wait --timeout 3m
  expect "ready managers" 2 "$(kubectl get deployment -n "$system" mcptest-operator -o jsonpath='{.status.readyReplicas}')"
}

namespace_of_a_team() {
  kubectl create namespace "$team"
  kubectl label namespace "$team" pod-security.kubernetes.io/enforce=restricted
  kubectl create secret generic mcptest-judge -n "$team" \
    --from-literal=ANTHROPIC_API_KEY=no-real-key --from-literal="ANTHROPIC_BASE_URL=$judge" \
    --from-literal=OPENAI_API_KEY=no-real-key --from-literal="OPENAI_BASE_URL=$judge/v1"
}

quickstart() {
  step "applying the quickstart"
  kubectl apply -n "$team" -f examples/quickstart.yaml
  kubectl wait -n "$team" --for=condition=Complete --timeout=3m er/demo
  kubectl get er,jobs,pods -n "$team"
  expect "child runs" 4 "$(kubectl get er -n "$team" -l eval.mcptest.dev/parent=demo -o name | wc -l | tr -d ' ')"
  local report
  report=$(bin/kubectl-mcptest report demo -n "$team" || (($? == 1)))
  printf '%s\n' "$report"
  contains "the report" "$report" "4 of 4 cells passed"
  contains "the report" "$report" "12 judge calls"
  step "applying the samples"
  kubectl apply -n "$team" -k config/samples
  kubectl wait -n "$team" --for=condition=Complete --timeout=3m er --all
}

# Both managers are deleted while a run goes on: its pods trust the certificate that the new ones serve.
restart_managers() {
  step "restarting the managers in the middle of a run"
  kubectl apply -n "$team" -f test/e2e/forty-calls.yaml
  local deadline=$((SECONDS + 120))
  until (($(kubectl get er -n "$team" -l eval.mcptest.dev/parent=forty -o jsonpath='{range .items[?(@.status.report)]}x{end}' | wc -c) >= 2)); do
    ((SECONDS < deadline)) || fail "no row of the run was judged"
    sleep 0.2
  done
  kubectl delete pods -n "$system" -l app.kubernetes.io/name=mcptest-operator --wait=false
  kubectl wait -n "$team" --for=condition=Complete --timeout=4m er/forty
  expect "judge calls of the run" 40 "$(kubectl get er forty -n "$team" -o jsonpath='{.status.summary.calls}')"
  expect "questions that were answered twice" 0 "$(stats | sed -n 's/.*"answeredTwice": *\([0-9]*\).*/\1/p')"
  kubectl rollout status deployment/mcptest-operator -n "$system" --timeout=2m
}

metrics_need_a_token() {
  step "asking for metrics"
  local pod token
  pod=$(kubectl get pods -n "$system" -l app.kubernetes.io/name=mcptest-operator -o jsonpath='{.items[0].status.podIP}')
  expect "metrics without a token" 401 "$(curl --silent --insecure --max-time 10 -o /dev/null -w '%{http_code}' "https://$pod:8080/metrics")"
  kubectl create serviceaccount scraper -n "$system"
  kubectl create clusterrolebinding scraper --clusterrole=mcptest-operator-metrics-reader --serviceaccount="$system:scraper"
  token=$(kubectl create token scraper -n "$system")
  contains "metrics with a token" "$(curl --silent --insecure --max-time 10 -H "Authorization: Bearer $token" "https://$pod:8080/metrics")" go_goroutines
}

least_privilege() {
  step "checking what the manager may do"
  local who="system:serviceaccount:$system:mcptest-operator"
  expect "manager reads Secrets of a team" no "$(kubectl auth can-i get secrets -n "$team" --as "$who" || true)"
  expect "manager makes pods" no "$(kubectl auth can-i create pods -n "$team" --as "$who" || true)"
  expect "manager makes Jobs" yes "$(kubectl auth can-i create jobs -n "$team" --as "$who" || true)"
}

uninstall() {
  step "uninstalling"
  go tool -modfile=hack/tools/helm/go.mod helm uninstall mcptest-operator --namespace "$system" --wait
  kubectl get crd evalruns.eval.mcptest.dev >/dev/null || fail "the CRDs, and with them every run, went with the chart"
  echo "ok: the runs are still there: $(kubectl get er -n "$team" -o name | wc -l | tr -d ' ')"
}

if [[ -z ${CLUSTER_DIR:-} ]]; then
  [[ $(id -u) == 0 && $(uname -s) == Linux ]] || fail "make e2e needs root on Linux: it runs a kubelet and containerd"
  build_image
  exec bin/cluster run --node containerd -- "$0"
fi

trap tell EXIT
step "loading the image"
bin/cluster load --name "$(basename "$CLUSTER_DIR")" dist/image.tar
start_judge
install
namespace_of_a_team
quickstart
restart_managers
metrics_need_a_token
least_privilege
uninstall
step "e2e passed"
