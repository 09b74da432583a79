import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

interface SectionProps {
  readonly title: string;
  /** A word or two at the right of the title. */
  readonly aside?: string | undefined;
  readonly children: React.ReactNode;
}

/** A part of the panel that can be folded away. */
export function Section(props: SectionProps): React.JSX.Element {
  const [isOpen, setOpen] = React.useState(true);
  const id = React.useId();
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  return (
    <section className="gpb-Section" aria-labelledby={`${id}-title`}>
      <h2 className="gpb-Section-title">
        <button
          type="button"
          id={`${id}-title`}
          aria-expanded={isOpen}
          aria-controls={`${id}-body`}
          onClick={() => setOpen(!isOpen)}
        >
          <Caret.react tag="span" className="gpb-Section-caret" aria-hidden="true" />
          <span className="gpb-Section-name">{props.title}</span>
          {props.aside !== undefined && <span className="gpb-Section-aside">{props.aside}</span>}
        </button>
      </h2>
      <div id={`${id}-body`} className="gpb-Section-body" hidden={!isOpen}>
        {isOpen && props.children}
      </div>
    </section>
  );
}
