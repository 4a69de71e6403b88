//go:build linux

package render

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// sandboxEnv is the environment variable that names the case to a child of TestSandbox.
const sandboxEnv = "RENDER_SANDBOX"

// sandboxed are the actions of children, after the filter forbids opening files, sockets and programs.
var sandboxed = map[string]struct {
	reason string
	do     func()
	// killed is true for controls: they must be killed.
	killed bool
}{
	"Templates": {"templates with all functions need no denied call", renderAll, false},
	"File":      {"opening a file is killed", func() { _, _ = os.ReadFile(os.DevNull) }, true},
	"Socket":    {"opening a socket is killed", func() { _, _ = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0) }, true},
	"Program":   {"starting a program is killed", func() { _ = unix.Exec("/bin/true", nil, nil) }, true},
	"Look":      {"looking up a file is killed", func() { _, _ = os.Stat(os.DevNull) }, true},
}

// TestSandbox starts itself again, in a network namespace without a network and with a filter of system calls. The
// child renders templates that call every function.
func TestSandbox(t *testing.T) {
	if what := os.Getenv(sandboxEnv); what != "" {
		inSandbox(sandboxed[what].do)
	}
	for name, tc := range sandboxed {
		t.Run(name, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestSandbox$")
			// A time zone that most machines do not use must be loaded before templates need it.
			child.Env = append(os.Environ(), sandboxEnv+"="+name, "TZ=Europe/Berlin")
			child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			if os.Geteuid() != 0 {
				child.SysProcAttr = &syscall.SysProcAttr{
					Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
					UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
					GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
				}
			}
			out, err := child.CombinedOutput()
			if child.ProcessState == nil {
				t.Fatalf("this test needs a network namespace of its own; run it as root, or allow user namespaces to all (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns): %v", err)
			}
			status, _ := child.ProcessState.Sys().(syscall.WaitStatus)
			through := strings.Contains(string(out), throughLine)
			switch {
			case !tc.killed && (err != nil || !through):
				t.Errorf("%s: %v\n%s", tc.reason, err, out)
			case tc.killed && (!status.Signaled() || status.Signal() != syscall.SIGSYS || through):
				t.Errorf("%s: %v, want to see it killed by SIGSYS\n%s", tc.reason, err, out)
			}
		})
	}
}

// throughLine is printed by a child that has completed.
const throughLine = "the child is through"

// inSandbox runs do in the sandbox, and then exits at once, because the testing package opens files at the end of a
// test.
func inSandbox(do func()) {
	readCalls() // They are read from files.
	links, err := net.Interfaces()
	if err != nil {
		giveUp("cannot list the interfaces: %v", err)
	}
	if slices.ContainsFunc(links, func(l net.Interface) bool { return l.Flags&net.FlagUp != 0 }) {
		giveUp("there is a network: %v", links)
	}
	if err := filterCalls(); err != nil {
		giveUp("cannot install the filter of system calls: %v", err)
	}
	done := make(chan struct{})
	go func() { // The filter applies to all threads.
		runtime.LockOSThread()
		do()
		close(done)
	}()
	<-done
	fmt.Println(throughLine)
	unix.Exit(0)
}

func giveUp(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	unix.Exit(1)
}

// deniedCalls are the system calls by which a process reaches files, sockets and other programs, including those that
// look up files by name (stat). The Go runtime needs none of them after its start.
var deniedCalls = []uint32{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_TREE, unix.SYS_MEMFD_CREATE,
	unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_READLINKAT,
	unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT, unix.SYS_TRUNCATE, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_STATX, unix.SYS_STATFS, unix.SYS_UTIMENSAT,
	unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_CHROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_GETXATTR, unix.SYS_SETXATTR, unix.SYS_INOTIFY_INIT1,
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG,
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_IO_URING_SETUP, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_PIDFD_GETFD,
}

// platforms are the platforms of the filter, with the numbers of the system calls that only they have.
var platforms = map[string]struct {
	audit  uint32
	denied []uint32
}{
	"arm64": {unix.AUDIT_ARCH_AARCH64, []uint32{79}}, // newfstatat
	"amd64": {unix.AUDIT_ARCH_X86_64, []uint32{
		2, 85, 87, 82, 86, 88, 83, 84, 133, 89, // open creat unlink rename link symlink mkdir rmdir mknod readlink
		90, 92, 94, 21, 4, 6, 262, 78, 132, 235, // chmod chown lchown access stat lstat newfstatat getdents utime utimes
		57, 58, 134, 253, // fork vfork uselib inotify_init
	}},
}

// filterCalls installs a filter on all threads of the process. The kernel kills the process when it makes a denied
// system call, or starts a process that is not a thread.
func filterCalls() error {
	platform, known := platforms[runtime.GOARCH]
	if !known {
		return fmt.Errorf("the system calls of %s are not known here", runtime.GOARCH)
	}
	const (
		load, equal, atLeast, anyBit, verdict = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ, unix.BPF_JMP | unix.BPF_JGE, unix.BPF_JMP | unix.BPF_JSET, unix.BPF_RET
		number, architecture, argument        = 0, 4, 16 // Offsets in struct seccomp_data.
	)
	kill := unix.SockFilter{Code: verdict, K: unix.SECCOMP_RET_KILL_PROCESS}
	allow := unix.SockFilter{Code: verdict, K: unix.SECCOMP_RET_ALLOW}
	program := []unix.SockFilter{
		{Code: load, K: architecture}, {Code: equal, K: platform.audit, Jt: 1}, kill,
		{Code: load, K: number}, {Code: atLeast, K: 0x40000000, Jf: 1}, kill, // The x32 calls of amd64.
		// The C library starts threads by clone3, whose arguments a filter cannot see, or else by clone.
		{Code: equal, K: unix.SYS_CLONE3, Jf: 1}, {Code: verdict, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
	}
	for _, call := range slices.Concat(deniedCalls, platform.denied) {
		program = append(program, unix.SockFilter{Code: equal, K: call, Jf: 1}, kill)
	}
	program = append(program,
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jt: 1}, allow,
		unix.SockFilter{Code: load, K: argument}, unix.SockFilter{Code: anyBit, K: unix.CLONE_THREAD, Jt: 1}, kill, allow,
	)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	other, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter)))
	switch {
	case errno != 0:
		return errno
	case other != 0:
		return fmt.Errorf("thread %d has another filter", other)
	}
	return nil
}

// calls are templates by the function that they call, and callValues their values.
var calls, callValues map[string]string

// cryptoCalls call the functions that are not part of the engine.
var cryptoCalls = map[string]string{
	"pkcs12key": `{{ pkcs12key .open }}`, "pkcs12keyPass": `{{ pkcs12keyPass "changeit" .archive }}`, "pkcs12cert": `{{ pkcs12cert .open }}`, "pkcs12certPass": `{{ .archive | pkcs12certPass "changeit" }}`,
	"pemToPkcs12": `{{ pemToPkcs12 .leaf .key }}`, "pemToPkcs12Pass": `{{ pemToPkcs12Pass .leaf .key "x" | b64dec | pkcs12keyPass "x" }}`, "fullPemToPkcs12": `{{ fullPemToPkcs12 .leaf .key }}`, "fullPemToPkcs12Pass": `{{ fullPemToPkcs12Pass .leaf .key "x" }}`,
	"pemTruststoreToPKCS12": `{{ pemTruststoreToPKCS12 .root }}`, "pemTruststoreToPKCS12Pass": `{{ pemTruststoreToPKCS12Pass .root "x" }}`,
	"filterPEM": `{{ filterPEM "CERTIFICATE" .leaf }}`, "filterCertChain": `{{ filterCertChain "root" .issuers }}`, "certSANs": `{{ certSANs .leaf }}`,
	"jwkPublicKeyPem": `{{ jwkPublicKeyPem .jwk }}`, "jwkPrivateKeyPem": `{{ jwkPrivateKeyPem .jwk }}`, "rsaDecrypt": `{{ .key | rsaDecrypt "RSA-OAEP" "SHA256" .ciphertext }}`,
	"fail": `{{ if not .user }}{{ fail "x" }}{{ end }}`,
}

// absent are the names of functions in other template libraries that give access to the environment.
var absent = []string{"env", "expandenv", "getHostByName", "getHostByAddr", "lookup", "lookupHost", "include", "tpl", "file", "readFile", "readDir", "glob", "exec", "cmd", "http", "secret", "plugin", "call"}

// readCalls fills calls and callValues from the tables of the engine's own tests, which have a line for each
// function, and from the fixtures of the crypto functions.
func readCalls() {
	source, err := parser.ParseFile(token.NewFileSet(), filepath.Join("template", "functions_test.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		giveUp("cannot read the tables of the engine's tests: %v", err)
	}
	tables := map[string]map[string]string{}
	ast.Inspect(source, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			tables[v.Names[0].Name] = tableOf(v.Values[0])
		}
		return true
	})
	calls = map[string]string{}
	for _, table := range []map[string]string{tables["functionCases"], tables["randomCases"], cryptoCalls} {
		for name, text := range table {
			calls[name] = text
		}
	}
	callValues = tables["values"]
	if callValues == nil {
		giveUp("the engine's tests no longer have a table of values")
	}
	for name, file := range map[string]string{
		"open": "open.p12", "archive": "modern.p12", "leaf": "leaf.pem", "key": "rsa.pem", "root": "root.pem", "issuers": "issuers.pem", "ciphertext": "oaep-sha256.bin",
	} {
		b, err := os.ReadFile(filepath.Join("cryptofuncs", "testdata", file))
		if err != nil {
			giveUp("%v", err)
		}
		callValues[name] = string(b)
	}
	// The example of RFC 7517, appendix A.2.
	callValues["jwk"] = `{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","d":"870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE"}`
}

// tableOf returns the strings of a map literal: each value, or the first field of each value.
func tableOf(e ast.Expr) map[string]string {
	table, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	contents := map[string]string{}
	for _, line := range table.Elts {
		kv, ok := line.(*ast.KeyValueExpr)
		if !ok {
			return nil
		}
		v := kv.Value
		if fields, ok := v.(*ast.CompositeLit); ok && len(fields.Elts) > 0 {
			v = fields.Elts[0]
		}
		contents[unquoted(kv.Key)] = unquoted(v)
	}
	return contents
}

func unquoted(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		s, _ := strconv.Unquote(l.Value)
		return s
	}
	return ""
}

// functionsServed returns the names of all functions of the engine.
func functionsServed() (names []string) {
	known := reflect.ValueOf(engine).Elem().FieldByName("known")
	if !known.IsValid() || known.Kind() != reflect.Map || known.Len() < 100 {
		giveUp("the engine's source no longer has the expected table of functions")
	}
	for _, k := range known.MapKeys() {
		names = append(names, k.String())
	}
	slices.Sort(names)
	return names
}

// renderAll renders a template for each function, as a Secret, and all other kinds of templates.
func renderAll() {
	read := Output{Data: map[string][]byte{}, Values: len(callValues)}
	for k, v := range callValues {
		read.Data[k] = []byte(v)
	}
	try := func(tmpl v1alpha1.Template) error {
		_, err := Shape(external(func(s *v1alpha1.ExternalSecretSpec) { s.Target.Template = &tmpl }), Plan{Target: "db"}, read, sourcesForTest)
		return err
	}
	served := functionsServed()
	for _, name := range served {
		if !strings.Contains(calls[name], name) {
			giveUp("no template calls %s", name)
		}
		if err := try(v1alpha1.Template{Data: map[string]string{"k": calls[name]}}); err != nil {
			giveUp("%s: %v", calls[name], err)
		}
	}
	for _, name := range absent {
		if slices.Contains(served, name) {
			giveUp("there is a function %s", name)
		}
		if err := try(v1alpha1.Template{Data: map[string]string{"k": "{{ " + name + ` "x" }}`}}); err == nil || !strings.Contains(err.Error(), "not defined") {
			giveUp("%s: %v", name, err)
		}
	}
	whole := v1alpha1.Template{
		Type: "kubernetes.io/tls", Data: map[string]string{"tls.crt": "{{ .leaf }}", "tls.key": "{{ .key }}", "zone": `{{ now | date "MST" }}{{ dateInZone "MST" now "Local" }}`},
		Metadata:     labels(map[string]string{"a": "{{ .user }}"}),
		TemplateFrom: []v1alpha1.TemplateFrom{configMap("many", "KeysAndValues", ""), secretText("one", "", ""), literal("a: {{ .user }}", "Annotations")},
	}
	if err := try(whole); err != nil {
		giveUp("%v", err)
	}
	if _, err := Rewrite([]KeyValue{{Key: "a"}}, []v1alpha1.Rewrite{transformStep(`{{ .value }}{{ now | date "2006" }}`)}, "f"); err != nil {
		giveUp("%v", err)
	}
}
