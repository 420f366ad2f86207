#!/usr/bin/env bash
# The operator on a local cluster with a process node, from the binaries in bin/.
#
#   hack/local.sh announce   says which judge would be asked
#   hack/local.sh demo       starts a cluster, runs examples/quickstart.yaml in it, prints the report, stops
#   hack/local.sh up         starts a cluster to play with, and leaves it running
#   hack/local.sh down       stops it
#
# `make demo`, `make up` and `make down` build the binaries first and call this.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly cluster=dev
readonly system=mcptest-system
image=${IMAGE:-ghcr.io/mcptest/mcptest-operator:dev}
readonly image
state=""     # where the logs and process ids of the manager and the judge are kept
judge_note="" # which judge is asked, said on the first line

say() { printf '%s\n' "$*" >&2; }

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= deadline)); then
      say "error: $what did not come up in time; see $state/*.log"
      return 1
    fi
    sleep 0.2
  done
}

# background NAME COMMAND...: starts a process of its own session, with its log and its id in $state.
background() {
  local name=$1
  shift
  nohup "$@" >"$state/$name.out" 2>"$state/$name.log" </dev/null &
  echo $! >"$state/$name.pid"
}

# stop NAME: ends what background started, if it is still that.
stop() {
  local pid
  pid=$(cat "$state/$1.pid" 2>/dev/null) || return 0
  rm -f "$state/$1.pid"
  case "$(ps -p "$pid" -o args= 2>/dev/null)" in
    *"bin/$1"*) kill "$pid" 2>/dev/null || true ;;
  esac
}

# free_port prints a port of this machine that nothing listens on.
free_port() {
  local port
  for _ in $(seq 100); do
    port=$((20000 + RANDOM % 10000))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
  say "error: no free port found"
  return 1
}

# choose_judge decides which judge is asked: a real one when its key is in the environment.
choose_judge() {
  if [[ -n ${ANTHROPIC_API_KEY:-} ]]; then
    judge_note="Judge: Anthropic, with the key in ANTHROPIC_API_KEY. This spends money."
  elif [[ -n ${OPENAI_API_KEY:-} ]]; then
    judge_note="Judge: OpenAI, with the key in OPENAI_API_KEY. This spends money."
  else
    judge_note="Judge: the STAND-IN judge (no ANTHROPIC_API_KEY or OPENAI_API_KEY is set). Its scores mean nothing; they show how things work."
  fi
}

# start_judge starts the stand-in, unless a real judge is asked, and writes the keys' environment file.
start_judge() {
  local keys=$state/keys.env
  (umask 077 && : >"$keys")
  if [[ -n ${ANTHROPIC_API_KEY:-}${OPENAI_API_KEY:-} ]]; then
    local name
    for name in {ANTHROPIC,OPENAI,GEMINI,GOOGLE,MISTRAL}_API_KEY {ANTHROPIC,OPENAI,GEMINI,MISTRAL}_BASE_URL; do
      if [[ -n ${!name:-} ]]; then printf '%s=%s\n' "$name" "${!name}" >>"$keys"; fi
    done
    return
  fi
  background fakejudge bin/fakejudge --rules hack/demo-rules.yaml --ready-file "$state/judge.url"
  wait_for 20 "the stand-in judge" test -s "$state/judge.url"
  local url
  url=$(tr -d '[:space:]' <"$state/judge.url")
  printf '%s\n' {ANTHROPIC,OPENAI,GEMINI,MISTRAL}_API_KEY=no-real-key {ANTHROPIC,GEMINI}_BASE_URL="$url" {OPENAI,MISTRAL}_BASE_URL="$url/v1" >>"$keys"
}

# install puts the CRDs in, starts the manager beside the cluster and gives the namespace default its keys.
install() {
  kubectl apply --server-side --force-conflicts -f config/crd/bases >/dev/null
  # A CRD that was made a moment ago has no conditions at all, which kubectl wait takes for an error.
  wait_for 60 "the CRDs" kubectl wait --for=condition=Established --timeout=10s \
    crd/evals.eval.mcptest.dev crd/evalruns.eval.mcptest.dev crd/rubrics.eval.mcptest.dev
  kubectl create namespace "$system" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
  local collector health
  collector=$(free_port)
  health=$(free_port)
  background manager bin/manager --namespace="$system" \
    --runner-image="$image" --runner-image-pull-policy=Never \
    --collector-bind-address="127.0.0.1:$collector" --collector-url="https://127.0.0.1:$collector" \
    --metrics-bind-address=0 --health-probe-bind-address="127.0.0.1:$health"
  wait_for 60 "the manager" answers "$health"
  kubectl create secret generic mcptest-judge --from-env-file="$state/keys.env" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
  rm -f "$state/keys.env"
}

# answers PORT: the manager says that it is ready.
answers() {
  local line
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
  IFS= read -r line <&3
  exec 3>&-
  [[ $line == *" 200 "* ]]
}

# quickstart prints the example with judge models that the keys at hand can ask.
quickstart() {
  local other=""
  if [[ -n ${ANTHROPIC_API_KEY:-} && -z ${OPENAI_API_KEY:-} ]]; then
    other='s/gpt-5.4-mini/claude-haiku-5-5/'
  elif [[ -z ${ANTHROPIC_API_KEY:-} && -n ${OPENAI_API_KEY:-} ]]; then
    other='s/claude-sonnet-5-5/gpt-5.4/'
  fi
  sed -e "$other" examples/quickstart.yaml
}

demo() {
  state=${CLUSTER_DIR:?run make demo}
  trap 'stop manager; stop fakejudge' EXIT
  start_judge
  install
  say "\$ kubectl apply -f examples/quickstart.yaml"
  quickstart | kubectl apply -f -
  say "\$ kubectl wait --for=condition=Complete er/demo"
  kubectl wait --for=condition=Complete --timeout=10m er/demo
  say "\$ kubectl get er,jobs"
  kubectl get er,jobs
  say "\$ kubectl mcptest report demo"
  bin/kubectl-mcptest report demo
}

up() {
  state=$PWD/.cluster/$cluster
  bin/cluster up --name "$cluster" --node process --image "$image=$PWD/dist/image" >/dev/null
  export KUBECONFIG=$state/kubeconfig PATH=$PWD/bin:$K8S_BIN:$PATH
  stop manager
  stop fakejudge
  choose_judge
  start_judge
  install
  say "$judge_note"
  say "The cluster is up. Talk to it, and stop it with 'make down':"
  say ""
  # shellcheck disable=SC2016 # the shell that it is pasted into has its own $PATH
  printf 'export KUBECONFIG=%s PATH=%s:%s:$PATH\n' "$KUBECONFIG" "$PWD/bin" "$K8S_BIN"
}

down() {
  state=$PWD/.cluster/$cluster
  stop manager
  stop fakejudge
  bin/cluster down --name "$cluster"
}

K8S_BIN=${K8S_BIN:-$(dirname "$(find "$PWD/bin/k8s" -name kubectl -type f 2>/dev/null | sort | tail -n 1)" 2>/dev/null || true)}

case ${1:-} in
  announce)
    choose_judge
    printf '%s\n' "$judge_note"
    ;;
  demo)
    if [[ -z ${CLUSTER_DIR:-} ]]; then
      exec bin/cluster run --node process --image "$image=$PWD/dist/image" -- "$0" demo
    fi
    demo
    ;;
  up) up ;;
  down) down ;;
  *)
    say "usage: hack/local.sh announce|demo|up|down"
    exit 2
    ;;
esac
