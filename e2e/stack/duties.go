package stack

// SharedDuties is the metric of the shared duties of modules that serve all namespaces, for Process.Metric.
const SharedDuties = `directsecrets_shared_duties{lease="` + Namespace + `/shared-duties.direct-secrets.io"}`
