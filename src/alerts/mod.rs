//! Rules and their alerts: rule files, evaluations, and the state between evaluations.
//!
//! Pure: the time is an argument, and values come from [`EvaluationQueries`]. Must never know: the
//! store, who evaluates and when, HTTP.

mod alert;
mod evaluation;
mod external;
mod file;
mod forwarding;
mod history;
mod label_matcher;
mod machine;
mod message;
mod posted;
mod resuming;
mod revision;
mod routing;
mod rule;
mod schedule;
mod silences;
mod state;
mod template;

pub use alert::{Acknowledgement, Alert, AlertState, LEFT_OUT, LabelSet, fingerprint};
pub use evaluation::{
    EvaluationQueries, ExpressionResult, GroupRun, RuleReport, WrittenSeries, evaluate, stages,
};
pub use external::{ExternalIdentity, query_escaped};
pub use file::{FileFault, is_label_name, read_rules};
pub use forwarding::{Alertmanager, OutgoingAlert, SentAlerts, fires_until};
pub use history::{Episode, GroupHistory, Revision};
pub use label_matcher::LabelMatcher;
pub use message::{Message, MessageAlert, order_by_job, order_by_labels};
pub use posted::{PostOutcome, PostableAlert, PostedAlerts, PostedFiring};
pub use revision::{Review, ReviewTerms, next_to_review};
pub use routing::{
    AlertDeliveries, AlertDelivery, Command, Discord, Email, Escalation, GroupKey, Groups, Http,
    Inhibitors, Integration, Opsgenie, Pagerduty, PendingNotification, RESOLVE_TIMEOUT_MS,
    Receiver, Route, Routing, Secret, Slack, SlackField, StoredGroup, Target, Teams, Telegram, Tls,
    Webhook, check_routing, read_http,
};
pub use rule::{Action, AlertPolicy, NoData, Rule, RuleGroup};
pub use schedule::{DueEvaluation, due, next_evaluation, skipped_evaluations};
pub use silences::{NewSilence, Recurrence, Silence, SilenceFault, SilenceState, Silences};
pub use state::{GroupState, RuleState};
pub use template::{MessageTemplates, TemplateData, TemplateQuery, TemplateTime};
