/** The head of the editor: the text's name and version, and what can be done with it. */
import { Ago } from "../../parts/ago";
import { Icon } from "../../parts/icon";
import type { Edit } from "./edit";
import type { TextKind } from "./kinds";

interface Props {
  kind: TextKind;
  edit: Edit;
  /** The ID of the form that saves. */
  form: string;
  canSave: boolean;
  /** The name of the text; `undefined` until a new one is saved. */
  name: string | undefined;
  isDamaged: boolean;
  onDelete: () => void;
}

export function Head({ kind, edit, form, canSave, name, isDamaged, onDelete }: Props) {
  const base = edit.base.value;
  const title = kind.isNamed ? (name ?? "New rules") : kind.title;
  return (
    <div class="head text-head">
      <BackLink kind={kind} />
      <h2>{title}</h2>
      {base && (
        <span class="muted num">
          version {base.version}, saved <Ago at={base.changed} />
        </span>
      )}
      {edit.isChanged.value && <span class="badge">Not saved</span>}
      <div class="text-actions">
        {base && !kind.isNamed && (
          <a class="button" href={kind.list}>
            <Icon name="bell" /> Send a test
          </a>
        )}
        {(base || isDamaged) && (
          <button type="button" class="button" disabled={edit.busy.value} onClick={onDelete}>
            <Icon name="trash" /> Delete
          </button>
        )}
        <button
          type="submit"
          form={form}
          class="button primary"
          disabled={!canSave}
          aria-keyshortcuts="Control+S"
          title="Save (Ctrl-S)"
        >
          Save
        </button>
      </div>
    </div>
  );
}

export function BackLink({ kind }: { kind: TextKind }) {
  return (
    <a
      class="button quiet icon-only"
      href={kind.list}
      aria-label={`All ${kind.what}`}
      title={`All ${kind.what}`}
    >
      <Icon name="left" />
    </a>
  );
}
