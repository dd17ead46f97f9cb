/** What the profile `user` has where agents may submit commands. */
export const USER_TOOLS: readonly string[] = [
  "relay_list_clusters",
  "relay_remote_mcp_context",
  "relay_submit_command",
  "relay_submit_agent",
  "relay_status",
  "relay_wait",
  "relay_observe",
  "relay_list_jobs",
  "relay_queue_list",
  "relay_cancel",
  "relay_read_job_log",
  "relay_list_artifacts",
  "relay_read_artifact",
  "relay_artifact_lineage",
  "relay_list_tasks",
  "relay_watch_task_events",
  "relay_record_task_event",
];

/** What `admin` has besides. */
export const ADMIN_TOOLS: readonly string[] = [
  "relay_submit_remote_agent",
  "relay_submit_jarvis_pipeline",
  "relay_submit_jarvis_job",
  "relay_submit_mcp_call",
  "relay_call_jarvis_mcp",
  "relay_cancel_job",
  "relay_list_progress",
  "relay_record_progress",
  "relay_get_job",
  "relay_get_job_status",
  "relay_monitor_job",
  "relay_watch_job_events",
  "relay_worker_status",
];
