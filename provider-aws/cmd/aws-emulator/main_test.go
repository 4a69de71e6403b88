package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/google/go-cmp/cmp"
)

func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"--address", "127.0.0.1:0", "--secret", "shop/db=a=b", "--secret", "empty=", "--parameter", "/shop/db=c=d"}, w)
	}()
	url, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("the URL must be printed: %v", err)
	}
	c := secretsmanager.New(secretsmanager.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(strings.TrimSpace(url)),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	out, err := c.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String("shop/db")})
	if err != nil {
		t.Fatalf("GetSecretValue: %v", err)
	}
	if diff := cmp.Diff("a=b", *out.SecretString); diff != "" {
		t.Errorf("the name ends at the first =: -want, +got:\n%s", diff)
	}
	put, err := http.NewRequestWithContext(ctx, http.MethodPut, strings.TrimSpace(url)+"/_control/secrets/shop/db", strings.NewReader("second"))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(put); err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("PUT: %v, %v", resp, err)
	}
	if out, err = c.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String("shop/db")}); err != nil || *out.SecretString != "second" {
		t.Errorf("a value that another process has put is served: %v, %v", out, err)
	}
	parameters := ssm.New(ssm.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(strings.TrimSpace(url)),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	p, err := parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/shop/db")})
	if err != nil {
		t.Fatalf("GetParameter: %v", err)
	}
	if diff := cmp.Diff("c=d", *p.Parameter.Value); diff != "" {
		t.Errorf("parameters are served, too: -want, +got:\n%s", diff)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"NoName":      {"a secret without a name is an error that does not show its text", []string{"--address", "127.0.0.1:0", "--secret", "canary"}, "--secret number 1 is not name=value"},
		"NoParameter": {"a parameter without a name is an error", []string{"--address", "127.0.0.1:0", "--parameter", "=canary"}, "--parameter number 1 is not name=value"},
		"Address":     {"an address that is not available is an error", []string{"--address", "127.0.0.1:port"}, "cannot start"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), tc.args, io.Discard)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("\n%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
