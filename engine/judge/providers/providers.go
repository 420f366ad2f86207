// Package providers makes the clients of the judge models' providers from the environment.
package providers

import (
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/judge"
	"github.com/mcptest/mcptest-operator/engine/judge/anthropic"
	"github.com/mcptest/mcptest-operator/engine/judge/gemini"
	"github.com/mcptest/mcptest-operator/engine/judge/openai"
)

// maxIdlePerHost is how many idle connections to a provider are kept: the most judge calls that a run may make at once.
const maxIdlePerHost = 256

// FromEnv returns a client for each provider that has a key, and what the environment says about judges (S-24).
//
// It reads MCPTEST_JUDGE_MODEL and, for each provider, the variables that judge.KeyVariables and judge.BaseURLVariable
// name, through getenv, white space around them aside. All clients share httpClient; nil means one with Transport.
func FromEnv(getenv func(string) string, httpClient *http.Client) (map[v1alpha1.Provider]judge.Client, judge.Env) {
	if httpClient == nil {
		httpClient = &http.Client{Transport: Transport()}
	}
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	clients := map[v1alpha1.Provider]judge.Client{}
	env := judge.Env{
		Model: v1alpha1.ModelName(get(judge.ModelVariable)),
		Keys:  map[v1alpha1.Provider]bool{},
	}
	for _, p := range judge.Providers() {
		key, baseURL := judge.Key(p, getenv), get(judge.BaseURLVariable(p))
		if key == "" {
			continue
		}
		env.Keys[p] = true
		switch p {
		case v1alpha1.ProviderAnthropic:
			clients[p] = anthropic.New(key, baseURL, httpClient)
		case v1alpha1.ProviderOpenAI:
			clients[p] = openai.New(key, baseURL, httpClient)
		case v1alpha1.ProviderGemini:
			clients[p] = gemini.New(key, baseURL, httpClient)
		case v1alpha1.ProviderMistral:
			clients[p] = openai.NewMistral(key, baseURL, httpClient)
		}
	}
	return clients, env
}

// Transport returns an HTTP transport for judge calls: many at once to few hosts, every wait on the network bounded
// except the one for the answer, which the judge's call timeout bounds. Proxies are those of the usual variables (HTTPS_PROXY, NO_PROXY).
func Transport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           2 * maxIdlePerHost,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
