/** The card of a form that lets a person in. */
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { ErrorLine } from "../../parts/dialog";
import { Icon } from "../../parts/icon";

interface Props {
  title: string;
  about?: ComponentChildren;
  /** The label of the button that submits. */
  action: string;
  isReady: boolean;
  error: string | undefined;
  onSubmit: () => void;
  children: ComponentChildren;
  /** Content below the form. */
  below?: ComponentChildren;
}

export function LoginCard(props: Props) {
  const { title, about, action, isReady, error, onSubmit, children, below } = props;
  const titleId = useId();
  return (
    <section class="card login" aria-labelledby={titleId}>
      <div class="login-head">
        <Icon name="grain" />
        <h1 id={titleId}>{title}</h1>
      </div>
      {about}
      <form
        class="stacked"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) onSubmit();
        }}
      >
        {children}
        <ErrorLine message={error} />
        <button type="submit" class="button primary" disabled={!isReady}>
          {action}
        </button>
      </form>
      {below}
    </section>
  );
}
