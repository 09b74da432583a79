import * as React from 'react';

export interface ActionProps {
  readonly label: string;
  readonly onClick: () => void;
  readonly hint?: string;
  readonly isPrimary?: boolean;
  readonly isQuiet?: boolean;
  readonly isDisabled?: boolean;
  readonly isExpanded?: boolean;
}

/** A small button. Disabled ones stay reachable, so that their hint can be read. */
export function Action(props: ActionProps): React.JSX.Element {
  const looks = [
    'gpb-Action',
    props.isPrimary ? 'gpb-mod-primary' : '',
    props.isQuiet ? 'gpb-mod-quiet' : ''
  ];
  const onClick = props.isDisabled ? undefined : props.onClick;
  return (
    <button
      type="button"
      className={looks.filter(Boolean).join(' ')}
      title={props.hint}
      aria-disabled={props.isDisabled || undefined}
      aria-expanded={props.isExpanded}
      onClick={onClick}
    >
      {props.label}
    </button>
  );
}
