package redact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestS48TokensByPrefix: each token has one rule alone that finds it.
func TestS48TokensByPrefix(t *testing.T) {
	const tail = "q7Zx9Km2Vb4T" // short of what looks like base64
	for _, prefix := range []string{
		"sk-", "pk-", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "AKIA", "ASIA",
	} {
		token := prefix + tail
		for name, tt := range map[string]struct{ in, want string }{
			"S-48 alone":                     {token, "[REDACTED:token]"},
			"S-48 in a sentence":             {"I used " + token + ".", "I used [REDACTED:token]."},
			"S-48 in quotes":                 {"'" + token + "'", "'[REDACTED:token]'"},
			"S-48 behind a line break":       {"x\n" + token, "x\n[REDACTED:token]"},
			"S-48 behind one in a string":    {`"x\n` + token + `"`, `"x\n[REDACTED:token]"`},
			"S-48 behind an escaped quote":   {`\u0022` + token, `\u0022[REDACTED:token]`},
			"S-48 in a URL":                  {"?q=%22" + token + "&y=1", "?q=%22[REDACTED:token]&y=1"},
			"S-48 in a longer word it stays": {"ri" + token, "ri" + token},
			"S-48 too short, it stays":       {prefix + "q7Z", prefix + "q7Z"},
		} {
			t.Run(prefix+" "+name, func(t *testing.T) { check(t, nil, tt.in, tt.want) })
		}
	}
}

// check redacts twice: the second time must change nothing.
func check(t *testing.T, r *Redactor, in, want string) {
	t.Helper()
	got := r.String(in)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("String(%q) (-want +got):\n%s", in, diff)
	}
	if again := r.String(got); again != got {
		t.Errorf("redacted twice: %q became %q", got, again)
	}
}

func TestS48Forms(t *testing.T) {
	const (
		hex    = "9f86d081884c7d659a2feaa0c55ad015"
		mixed  = "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA"
		jwt    = "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln"
		stays  = "stays"
		secret = "secret"
	)
	pem := func(label string) string { return "-----BEGIN " + label + "-----\nMIIE\n-----END " + label + "-----" }
	tests := map[string]struct{ in, kind string }{
		"S-48 a JSON web token":                        {jwt, "jwt"},
		"S-48 one without a signature":                 {jwt[:strings.LastIndex(jwt, ".")], "jwt"},
		"S-48 eyJ in a word stays":                     {"x" + jwt[:12], stays},
		"S-48 a short eyJ stays":                       {"eyJhbGc", stays},
		"S-48 a private key":                           {pem("PRIVATE KEY"), "private-key"},
		"S-48 an RSA private key":                      {pem("RSA PRIVATE KEY"), "private-key"},
		"S-48 an EC private key":                       {pem("EC PRIVATE KEY"), "private-key"},
		"S-48 an OpenSSH private key":                  {pem("OPENSSH PRIVATE KEY"), "private-key"},
		"S-48 an encrypted private key":                {pem("ENCRYPTED PRIVATE KEY"), "private-key"},
		"S-48 a PGP private key":                       {pem("PGP PRIVATE KEY BLOCK"), "private-key"},
		"S-48 a private key on one line":               {strings.ReplaceAll(pem("PRIVATE KEY"), "\n", `\n`), "private-key"},
		"S-48 a certificate stays":                     {pem("CERTIFICATE"), stays},
		"S-48 a public key stays":                      {pem("PUBLIC KEY"), stays},
		"S-48 32 hex digits":                           {hex, "hex"},
		"S-48 64 hex digits":                           {hex + hex, "hex"},
		"S-48 32 hex digits in capitals":               {strings.ToUpper(hex), "hex"},
		"S-48 31 hex digits stay":                      {hex[:31], stays},
		"S-48 a UUID stays":                            {"9f86d081-884c-7d65-9a2f-eaa0c55ad015", stays},
		"S-48 32 of base64":                            {mixed, "base64"},
		"S-48 32 of base64 with its padding":           {mixed + "==", "base64"},
		"S-48 base64 with + and /":                     {"aB3dE5gH7jK9mN1+Q3rS5tU7/W9xY1zA", "base64"},
		"S-48 base64 with - and _":                     {"aB3dE5gH7jK9mN1-Q3rS5tU7_W9xY1zA", "base64"},
		"S-48 31 of base64 stay":                       {mixed[:31], stays},
		"S-48 base64 with two digits":                  {"aBcdEfgHijKlmNopQrsTuvWxyZabCde12", "base64"},
		"S-48 base64 with one digit stays":             {"aBcdEfgHijKlmNopQrsTuvWxyZabCdeF1", stays},
		"S-48 base64 with two capitals":                {"abcdefghijklmnopqrstuvwxyz1234567AB", "base64"},
		"S-48 base64 with one capital stays":           {"abcdefghijklmnopqrstuvwxyz1234567Ax", stays},
		"S-48 base64 with two small letters":           {"ABCDEFGHIJKLMNOPQRSTUVWXYZ1234567ab", "base64"},
		"S-48 base64 with one small letter stays":      {"ABCDEFGHIJKLMNOPQRSTUVWXYZ1234567aX", stays},
		"S-48 the value of a secret":                   {"correct horse battery", secret},
		"S-48 the value of a secret that a word holds": {"hunter2!", secret},
		"S-48 a secret as JSON writes it":              {`tab\tand \"quote\"`, secret},
		"S-48 a part of a secret's value stays":        {"correct horse", stays},
		"S-48 a secret of under 6 bytes stays":         {"abc12", stays},
		"S-48 a sentence about tokens and keys stays":  {"A token, a key and a password are secrets: keep them.", stays},
		"S-48 the name of a model stays":               {"claude-haiku-4-5-20251001", stays},
		"S-48 the digits of a number stay":             {strings.Repeat("1234567890", 3), stays},
	}
	r := New("correct horse battery", "hunter2!", "tab\tand \"quote\"", "abc12")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := tt.in
			if tt.kind != stays {
				want = mark(tt.kind)
			}
			check(t, r, tt.in, want)
			check(t, r, "It is "+tt.in+", as said.", "It is "+want+", as said.")
		})
	}
}

func TestS48Keys(t *testing.T) {
	for _, key := range []string{
		"apiKey", "api_key", "API-KEY", "x.api.key", "token", "access_token", "refreshToken", "idToken", "password", "dbPassword", "passwd", "passphrase",
		"secret", "client_secret", "secretKey", "secret_access_key", "accessKey", "privateKey", "signing_key", "authorization", "credential", "credentials",
	} {
		for name, tt := range map[string]struct{ in, want string }{
			"S-48 in JSON":                  {`{"` + key + `": "v 1", "x": 1}`, `{"` + key + `": "[REDACTED:value]", "x": 1}`},
			"S-48 in JSON without spaces":   {`{"` + key + `":"v\"1","x":1}`, `{"` + key + `":"[REDACTED:value]","x":1}`},
			"S-48 a number":                 {`{"` + key + `": 12.5e3, "x": 1}`, `{"` + key + `": [REDACTED:value], "x": 1}`},
			"S-48 an array":                 {`{"` + key + `": ["v]", ["w"]], "x": 1}`, `{"` + key + `": [REDACTED:value], "x": 1}`},
			"S-48 an object":                {`{"` + key + `": {"a": "}", "b": {}}, "x": 1}`, `{"` + key + `": [REDACTED:value], "x": 1}`},
			"S-48 an object without an end": {`{"` + key + `": {"a": "v", "x": 1`, `{"` + key + `": [REDACTED:value]`},
			"S-48 a string without an end":  {`{"` + key + `": "v, "`, `{"` + key + `": "[REDACTED:value]"`},
			"S-48 JSON in JSON":             {`"{\"` + key + `\": \"v\", \"x\": 1}"`, `"{\"` + key + `\": \"[REDACTED:value]\", \"x\": 1}"`},
			"S-48 an array in JSON in JSON": {`"{\"` + key + `\": [\"v]\"], \"x\": 1}"`, `"{\"` + key + `\": [REDACTED:value], \"x\": 1}"`},
			"S-48 in Python":                {`{'` + key + `': 'v', 'x': 1}`, `{'` + key + `': '[REDACTED:value]', 'x': 1}`},
			"S-48 in Python, a ' in it":     {`{'` + key + `': "it's", 'x': 1}`, `{'` + key + `': "[REDACTED:value]", 'x': 1}`},
			"S-48 null, true, false stay":   {`{"` + key + `": null, "` + key + `": true, "` + key + `": false}`, `{"` + key + `": null, "` + key + `": true, "` + key + `": false}`},
			"S-48 a key without a value":    {`the field "` + key + `":`, `the field "` + key + `":`},
			"S-48 an assignment":            {key + "=v x", key + "=[REDACTED:value] x"},
			"S-48 one with escaped quotes":  {key + ` = "v\"w" x`, key + ` = "[REDACTED:value]" x`},
			"S-48 one with a scheme":        {key + "=Bearer v x", key + "=[REDACTED:value] x"},
		} {
			t.Run(key+" "+name, func(t *testing.T) { check(t, nil, tt.in, tt.want) })
		}
	}
	for _, key := range []string{"max_tokens", "tokens", "keyboard", "monkey", "secretary", "author", "tokenizer", "passwordless", "keys", "x"} {
		for _, in := range []string{`{"` + key + `": "v"}`, `{"` + key + `": ["v"]}`, key + "=v", key + ": v"} {
			t.Run("S-48 the value stays of "+in, func(t *testing.T) { check(t, nil, in, in) })
		}
	}
}

func TestS48Headers(t *testing.T) {
	for _, name := range []string{
		"Authorization", "authorization", "Proxy-Authorization", "Cookie", "COOKIE", "Set-Cookie", "X-Auth-Token", "X-Api-Key", "x-goog-api-key",
		"X-Client-Secret", "Ocp-Apim-Subscription-Key",
	} {
		for what, tt := range map[string]struct{ in, want string }{
			"S-48 to the end of the line": {"GET /\r\n" + name + ": Basic a b; c\r\nHost: x", "GET /\r\n" + name + ": [REDACTED:header]\r\nHost: x"},
			"S-48 to the quote":           {`curl -H '` + name + `: a b' -v`, `curl -H '` + name + `: [REDACTED:header]' -v`},
			"S-48 in JSON":                {`{"` + name + `": "a b", "Host": "x"}`, `{"` + name + `": "[REDACTED:value]", "Host": "x"}`},
			"S-48 in JSON, several":       {`{"` + name + `": ["a b", "c"], "Host": "x"}`, `{"` + name + `": [REDACTED:value], "Host": "x"}`},
		} {
			t.Run(name+" "+what, func(t *testing.T) { check(t, nil, tt.in, tt.want) })
		}
	}
	for _, in := range []string{"Host: example.com", "Content-Type: text/plain", "X-Request-Id: 17", "Key: C major", "Cookies: two of them"} {
		t.Run("S-48 stays "+in, func(t *testing.T) { check(t, nil, in, in) })
	}
}
