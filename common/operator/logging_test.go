package operator

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestLogLevel logs a line of each sort, and checks which lines the level shows.
func TestLogLevel(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		level  string
		want   []string
	}{
		"Debug": {"debug shows everything, including the information of libraries", "debug", []string{"own error", "own warning", "own info", "library error", "library info"}},
		"Info":  {"info hides the information of libraries, but not their errors", "info", []string{"own error", "own warning", "own info", "library error"}},
		"Warn":  {"warn hides information", "warn", []string{"own error", "own warning", "library error"}},
		"Error": {"error shows only errors", "error", []string{"own error", "library error"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			l := logs{LogFormat: "text", LogLevel: tc.level}
			own, library := l.logger(&out), l.forLibraries(&out)
			own.Error("own error")
			own.Warn("own warning")
			own.Info("own info")
			library.Error(errors.New("broken"), "library error")
			library.Info("library info")
			var got []string
			for _, line := range []string{"own error", "own warning", "own info", "library error", "library info"} {
				if strings.Contains(out.String(), `msg="`+line+`"`) {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLogged makes events, and checks the event and the log line of each.
func TestLogged(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	db := metav1.ObjectMeta{Namespace: "shop", Name: "db"}
	cases := map[string]struct {
		reason string
		of     runtime.Object
		sort   string
		line   string
	}{
		"Failure":  {"a failure is a warning with the name of the object", &v1alpha1.ExternalSecret{ObjectMeta: db}, "Warning", `level=WARN msg="100% wrong" reason=Denied action=Sync kind=ExternalSecret namespace=shop name=db`},
		"Recovery": {"any other event is information", &v1alpha1.ExternalSecret{ObjectMeta: db}, "Normal", `level=INFO msg="100% wrong" reason=Denied action=Sync kind=ExternalSecret namespace=shop name=db`},
		"Cluster":  {"a cluster object has no namespace", &v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: "db"}}, "Normal", `level=INFO msg="100% wrong" reason=Denied action=Sync kind=ClusterExternalSecret namespace="" name=db`},
		"Unknown":  {"an object without a name is logged as well", &corev1.Pod{}, "Warning", `level=WARN msg="100% wrong" reason=Denied action=Sync`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			recorder := events.NewFakeRecorder(1)
			l := logs{LogFormat: "text", LogLevel: "info"}
			logged{recorder, scheme, l.logger(&out)}.Eventf(tc.of, nil, tc.sort, "Denied", "Sync", "%d%% %s", 100, "wrong")
			_, line, _ := strings.Cut(strings.TrimSpace(out.String()), " ") // The time is first.
			if diff := cmp.Diff([]string{tc.line, tc.sort + " Denied 100% wrong"}, []string{line, <-recorder.Events}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
